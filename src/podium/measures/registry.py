"""Measures: values such as ``nDCG@10``, and the registry of what is known of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from podium.errors import ArgumentError
from podium.measures.parameters import Parameter, Value
from podium.registry import same_definition, unknown_name

LABEL_INPUTS = ("labels", "ideal", "ties", "size")
PAIR_INPUTS = ("better", "worse", "size")

Aggregate: TypeAlias = Literal["mean", "sum", "geometric mean"]
"""How the values of queries become one."""


@dataclass(frozen=True, repr=False)
class Measure:
    """A measure with its parameters and its cut-off, equal to any other written alike.

    Call it to set parameters, and ``@`` a number to look at the first documents only.

    Attributes:
        name: The name under which the measure is registered.
        parameters: The parameters that were set, in the order the measure lists them.
        cut_off: How many documents from the top are looked at; None means all of them.

    Example:
        >>> from podium.measures import P, kNDCG, nDCG
        >>> nDCG@10, P(rel=2)@5, kNDCG(k=10)@5
        (nDCG@10, P(rel=2)@5, kNDCG(k=10)@5)
        >>> nDCG@10 == nDCG(gains="linear")@10
        False
    """

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()
    cut_off: int | None = None

    def __call__(self, **parameters: object) -> Measure:
        """The same measure with parameters set."""
        definition = definition_of(self)
        chosen: dict[str, Value] = dict(self.parameters)
        for name, value in parameters.items():
            parameter = definition.parameter(name)
            try:
                chosen[name] = parameter.checked(value)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"{self.name} does not take {name}={value!r}", hint=f"{error}."
                ) from error
        in_order = tuple(
            (each.name, chosen[each.name]) for each in definition.parameters if each.name in chosen
        )
        return replace(self, parameters=in_order)

    def __matmul__(self, cut_off: float) -> Measure:
        """The same measure of the first documents only, or at a level: ``IPrec@0.1``."""
        for parameter in definition_of(self).parameters:
            if self.name.lower() in parameter.suffix_of:
                return self(**{parameter.name: cut_off})
        if not definition_of(self).takes_cut_off:
            raise ArgumentError(f"{self.name} has no cut-off", hint=f"Write {self!r} alone.")
        if isinstance(cut_off, bool) or not isinstance(cut_off, int) or cut_off < 1:
            raise ArgumentError(
                f"the cut-off of {self.name} is {cut_off!r}", hint="Give an integer of at least 1."
            )
        return replace(self, cut_off=cut_off)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        arguments = f"({parameters})" if parameters else ""
        cut_off = "" if self.cut_off is None else f"@{self.cut_off}"
        return f"{self.name}{arguments}{cut_off}"

    def __getitem__(self, name: str) -> Value | None:
        """The value of a parameter: as set, else its default, else None."""
        default = definition_of(self).parameter(name).default
        return dict(self.parameters).get(name, default)

    @property
    def larger_is_better(self) -> bool:
        """False for losses."""
        return definition_of(self).larger_is_better


@dataclass(frozen=True)
class Signature:
    """What a function takes.

    Attributes:
        inputs: What it reads of a query: a part of ``LABEL_INPUTS`` or ``PAIR_INPUTS``, in order.
        arguments: The names of what follows, in order: what an evaluation knows and parameters.
        parameters: The measure's parameters among the arguments.
    """

    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    parameters: tuple[Parameter, ...]


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
        monotone: Whether a list is never worse for the better of two labels at the better rank.
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
    monotone: bool
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


@dataclass(frozen=True)
class Alias:
    """Another name of a measure, with the parameters that it implies."""

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()


_DEFINITIONS: dict[str, MeasureDefinition] = {}
_NAMES: dict[str, Alias] = {}


def register(definition: MeasureDefinition, aliases: Mapping[str, Mapping[str, Value]]) -> Measure:
    """Add a measure, with other names and the parameters that each implies."""
    name = definition.name
    names = {name.lower(): Alias(name)}
    names |= {
        alias.lower(): Alias(name, tuple(parameters.items()))
        for alias, parameters in aliases.items()
    }
    for each in names:
        holder = _NAMES.get(each)
        if holder and not same_definition(_DEFINITIONS[holder.name].function, definition.function):
            raise ArgumentError(
                f"The name {each!r} belongs to the measure {holder.name}. Choose another."
            )
    _DEFINITIONS[name] = definition
    _NAMES.update(names)
    return Measure(name)


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


def measure_named(name: str) -> Measure:
    """Return the measure of a name or an alias in any case."""
    measure = find(name)
    if measure is None:
        raise unknown_measure(name)
    return measure


def unknown_measure(name: str) -> ArgumentError:
    """Return the error for a name that no measure has."""
    by_measure = sorted(_NAMES.items(), key=lambda each: each[1].name.lower())
    return unknown_name("measure", name, {spelling: alias.name for spelling, alias in by_measure})
