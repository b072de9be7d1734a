"""The registry of measures and the decorator that fills it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

from podium.errors import ArgumentError
from podium.measures.arguments import EvaluationArguments
from podium.measures.conventions import Conventions
from podium.measures.parameters import Parameter, Value
from podium.measures.signature import PAIR_INPUTS, Signature
from podium.measures.value import Measure
from podium.registry import same_definition, unknown_name

Aggregate: TypeAlias = Literal["mean", "sum", "geometric mean"]
"""How the values of queries become one."""


@dataclass(frozen=True, eq=False)
class MeasureDefinition:
    """All that is known of a measure: its function, its parameters and how it behaves.

    Attributes:
        name: The name by which it is written.
        function: Its value for one query; NaN where there is nothing to find.
        signature: What the function takes.
        expected: Its mean over all orders of documents with equal scores, if it has a formula.
        expected_signature: What that takes.
        takes_cut_off: Whether ``@`` a number makes sense.
        larger_is_better: False for losses.
        ideal_by_gain: Whether its ideal ranking is by gain, should that not be by label.
        aggregate: How the values of queries become one.
        knows_the_pool: Whether it gets a label below 0, of a document that is in the pool and was
            not judged, as it is, where conventions take it as unjudged.
    """

    name: str
    function: Callable[..., float]
    signature: Signature
    expected: Callable[..., float] | None
    expected_signature: Signature | None
    takes_cut_off: bool
    larger_is_better: bool
    ideal_by_gain: bool
    aggregate: Aggregate
    knows_the_pool: bool

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters, in the order in which they are written."""
        return self.signature.parameters

    @property
    def on_pairs(self) -> bool:
        """Whether it is computed from preferred pairs rather than labels."""
        return self.signature.inputs[0] in PAIR_INPUTS[:2]

    @property
    def needs_ideal(self) -> bool:
        """Whether it reads the labels of the pool."""
        expected = self.expected_signature
        return "ideal" in self.signature.inputs or (
            expected is not None and "ideal" in expected.inputs
        )

    @property
    def supports_shared_ranks(self) -> bool:
        """Whether it can give all documents with one score the rank of the last of them."""
        expected = self.expected_signature
        return expected is not None and "ties_share_last_rank" in expected.arguments

    @property
    def doc(self) -> str:
        """What the measure is, for the reference page."""
        return (inspect.getdoc(self.function) or "").partition("\nArgs:\n")[0].rstrip()

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name."""
        for each in self.parameters:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.parameters) or "none"
        raise ArgumentError(f"{self.name} has no parameter {name!r}", hint=f"It has: {known}.")

    def cut_off(self, measure: Measure, conventions: Conventions) -> int | None:
        """Return how many documents count; None means all of them."""
        if measure.cut_off is None and self.takes_cut_off:
            return conventions.cut_off
        return measure.cut_off

    def evaluation_arguments(
        self, measure: Measure, conventions: Conventions, longest: int
    ) -> EvaluationArguments:
        """Return what functions of the measure may ask for.

        Args:
            measure: With its parameters.
            conventions: Those that apply to the measure.
            longest: The length of the longest list, ranked or ideal.
        """
        parameters = {each.name: measure[each.name] for each in self.parameters}
        return EvaluationArguments(
            parameters, self.cut_off(measure, conventions), conventions, longest
        )


@dataclass(frozen=True)
class Alias:
    """Another name of a measure, with the parameters that it implies."""

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()


_DEFINITIONS: dict[str, MeasureDefinition] = {}
_NAMES: dict[str, Alias] = {}


@overload
def measure(function: Callable[..., float], /) -> Measure: ...


@overload
def measure(
    name: str | None = None,
    /,
    *,
    aliases: Sequence[str] | Mapping[str, Mapping[str, Value]] = ...,
    expected: Callable[..., float] | None = ...,
    takes_cut_off: bool | None = ...,
    larger_is_better: bool = ...,
    ideal_by_gain: bool = ...,
    aggregate: Aggregate = ...,
    knows_the_pool: bool = ...,
) -> Callable[[Callable[..., float]], Measure]: ...


def measure(
    function: Callable[..., float] | str | None = None,
    /,
    *,
    aliases: Sequence[str] | Mapping[str, Mapping[str, Value]] = (),
    expected: Callable[..., float] | None = None,
    takes_cut_off: bool | None = None,
    larger_is_better: bool = True,
    ideal_by_gain: bool = False,
    aggregate: Aggregate = "mean",
    knows_the_pool: bool = False,
) -> Measure | Callable[[Callable[..., float]], Measure]:
    """Register a function of one ranked query as a measure.

    The function takes what it needs, by name. First, in this order, what it reads of a query:

    - ``labels``: those of the documents by descending score, at least as far as the cut-off; NaN
      where a document was not judged;
    - ``ideal``: the labels of all documents of the pool, largest first;
    - ``size``: how many documents were ranked;
    - or, for preferences, ``better`` and ``worse``: the ranks from 1 of the two documents of each
      pair, infinite if the list does not have one;

    then ``cut``, the cut-off, and what else an evaluation knows (``rel``, ``discounts``, and the
    rest of ``podium.measures.arguments``); then the parameters of the measure, each with a default:
    numbers, booleans, or tuples of numbers, which arrive as arrays. It returns the query's value,
    or NaN where there is nothing to find. Its docstring is the measure's reference. It is compiled
    with Numba if that is possible and runs as Python if not.

    Where scores are tied, the value is the mean over the orders of the tied documents: over all if
    there are at most 1000 different ones, else over 1000 that give each document each rank equally
    often. A formula for that mean, ``expected``, is exact and faster: a function that also takes
    ``ties``, which has for each position the position after the last document of the same score.

    Args:
        function: The function, or how the measure is written, by default the function's name;
            case does not matter when names are looked up.
        aliases: Other names, as a list, or with the parameters that each implies.
        expected: The mean of the function over all orders of documents with equal scores.
        takes_cut_off: Whether ``@`` a number makes sense, by default whether the function takes
            ``cut`` or ``discounts``.
        larger_is_better: False for losses.
        ideal_by_gain: Whether ``ideal`` is to be by gain where users give gains that do not
            rise with the labels.
        aggregate: How the values of queries become one: their mean, their sum (counts), or their
            geometric mean, in which a value is at least 0.00001.
        knows_the_pool: Whether the function gets labels below 0, of documents that are in the pool
            and were not judged, where conventions take them as unjudged.

    Example:
        >>> @measure
        ... def faded_labels(labels, cut, fade=0.5):
        ...     "The labels of the first documents, fading from rank to rank."
        ...     total, weight = 0.0, 1.0
        ...     for position in range(min(len(labels), cut)):
        ...         total += weight * labels[position]
        ...         weight *= fade
        ...     return total
        >>> from podium.measures import evaluate
        >>> two = [faded_labels, faded_labels(fade=0.1) @ 2]
        >>> evaluate(two, labels=[0, 3, 1], scores=[0.1, 0.7, 0.2], group=[3]).means
        {faded_labels: 3.5, faded_labels(fade=0.1)@2: 3.1}
    """
    if callable(function):
        return measure()(function)
    chosen_name = function

    def register(function: Callable[..., float]) -> Measure:
        name = chosen_name or function.__name__
        signature = Signature.of(function, name)
        of_expected = None
        if expected is not None:
            of_expected = Signature.of(expected, name, signature.parameters)
            if of_expected.parameters:
                raise ArgumentError(
                    f"The formula for ties of the measure {name} takes "
                    f"{of_expected.parameters[0].name}, which its function does not take. Give "
                    "both the same parameters."
                )
        uses_rank = {"cut", "discounts"} & {*signature.arguments}
        definition = MeasureDefinition(
            name=name,
            function=function,
            signature=signature,
            expected=expected,
            expected_signature=of_expected,
            takes_cut_off=bool(uses_rank) if takes_cut_off is None else takes_cut_off,
            larger_is_better=larger_is_better,
            ideal_by_gain=ideal_by_gain,
            aggregate=aggregate,
            knows_the_pool=knows_the_pool,
        )
        implied = aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}
        names = {name.lower(): Alias(name)}
        names |= {
            alias.lower(): Alias(name, tuple(parameters.items()))
            for alias, parameters in implied.items()
        }
        for each in names:
            holder = _NAMES.get(each)
            if holder and not same_definition(_DEFINITIONS[holder.name].function, function):
                raise ArgumentError(
                    f"The name {each!r} belongs to the measure {holder.name}. Choose another."
                )
        _DEFINITIONS[name] = definition
        _NAMES.update(names)
        return Measure(name)

    return register


def measure_definitions() -> list[MeasureDefinition]:
    """Return all measures, by name."""
    return [_DEFINITIONS[name] for name in sorted(_DEFINITIONS, key=str.lower)]


def names_of(definition: MeasureDefinition) -> dict[str, Alias]:
    """Return the names of a measure, in lower case, its own among them."""
    return {name: alias for name, alias in _NAMES.items() if alias.name == definition.name}


def definition_of(measure: Measure) -> MeasureDefinition:
    """Return what is known of a measure."""
    if measure.name not in _DEFINITIONS:
        raise unknown_measure(measure.name)
    return _DEFINITIONS[measure.name]


def find(name: str) -> Measure | None:
    """Return the measure of a name or an alias in any case, or None."""
    alias = _NAMES.get(name.lower())
    return None if alias is None else Measure(alias.name)(**dict(alias.parameters))


def unknown_measure(name: str) -> ArgumentError:
    """Return the error for a name that no measure has."""
    by_measure = sorted(_NAMES.items(), key=lambda each: each[1].name.lower())
    return unknown_name("measure", name, {spelling: alias.name for spelling, alias in by_measure})
