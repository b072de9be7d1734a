"""The decorator that makes a measure of a function, by reading what the function takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints, overload

from podium.errors import ArgumentError
from podium.measures.arguments import EVALUATION_ARGUMENTS
from podium.measures.parameters import BY_CONVENTION, CHECKS, Parameter, Value
from podium.measures.registry import (
    LABEL_INPUTS,
    PAIR_INPUTS,
    Aggregate,
    Measure,
    MeasureDefinition,
    Signature,
    register,
)


@overload
def measure(function: Callable[..., float], /) -> Measure: ...


@overload
def measure(
    name: str | None = None,
    /,
    *,
    aliases: Sequence[str] | Mapping[str, Mapping[str, Value]] = ...,
    expected: Callable[..., float] | Literal[True] | None = ...,
    takes_cut_off: bool | None = ...,
    larger_is_better: bool = ...,
    ideal_by_gain: bool = ...,
    monotone: bool = ...,
    aggregate: Aggregate = ...,
    knows_the_pool: bool = ...,
) -> Callable[[Callable[..., float]], Measure]: ...


def measure(
    function: Callable[..., float] | str | None = None,
    /,
    *,
    aliases: Sequence[str] | Mapping[str, Mapping[str, Value]] = (),
    expected: Callable[..., float] | Literal[True] | None = None,
    takes_cut_off: bool | None = None,
    larger_is_better: bool = True,
    ideal_by_gain: bool = False,
    monotone: bool = False,
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
    numbers, booleans, or tuples of numbers, which arrive as arrays. ``rel=BY_CONVENTION`` makes
    what the conventions have a parameter, too. It returns the query's value,
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
        expected: The mean of the function over all orders of documents with equal scores; True if
            their order does not change its value.
        takes_cut_off: Whether ``@`` a number makes sense, by default whether the function takes
            ``cut`` or ``discounts``.
        larger_is_better: False for losses.
        ideal_by_gain: Whether ``ideal`` is to be by gain where users give gains that do not
            rise with the labels.
        monotone: Whether a list is never worse for the better of two labels at the better rank:
            then what many unjudged documents could change has bounds.
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
        >>> evaluate(two, [0, 3, 1], [0.1, 0.7, 0.2], group=[3]).means
        {faded_labels: 3.5, faded_labels(fade=0.1)@2: 3.1}
    """
    if callable(function):
        return measure()(function)
    chosen_name = function

    def register_function(function: Callable[..., float]) -> Measure:
        name = chosen_name or function.__name__
        signature = read_signature(function, name)
        formula, formula_signature = (function, signature) if expected is True else (None, None)
        if callable(expected):
            formula = expected
            formula_signature = read_signature(expected, name, signature.parameters)
            if formula_signature.parameters:
                raise ArgumentError(
                    f"The formula for ties of the measure {name} takes "
                    f"{formula_signature.parameters[0].name}, which its function does not take. "
                    "Give both the same parameters."
                )
        uses_rank = {"cut", "discounts"} & {*signature.arguments}
        definition = MeasureDefinition(
            name=name,
            function=function,
            signature=signature,
            expected=formula,
            expected_signature=formula_signature,
            takes_cut_off=bool(uses_rank) if takes_cut_off is None else takes_cut_off,
            larger_is_better=larger_is_better,
            ideal_by_gain=ideal_by_gain,
            monotone=monotone,
            aggregate=aggregate,
            knows_the_pool=knows_the_pool,
        )
        implied = aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}
        return register(definition, implied)

    return register_function


def read_signature(
    function: Callable[..., float], name: str, parameters: Sequence[Parameter] = ()
) -> Signature:
    """Read the signature of a function of a measure.

    Args:
        function: The function.
        name: The name of the measure, for messages.
        parameters: Parameters that the measure has already: another function of it may take
            them by their names alone, and has no others.

    Example:
        >>> def screen(labels, ideal, cut, fade=0.8): ...
        >>> signature = read_signature(screen, "screen")
        >>> signature.inputs, signature.arguments
        (('labels', 'ideal'), ('cut', 'fade'))
        >>> [(each.name, each.default) for each in signature.parameters]
        [('fade', 0.8)]
    """
    taken = list(inspect.signature(function).parameters.values())
    for each in taken:
        if each.kind is not each.POSITIONAL_OR_KEYWORD:
            raise ArgumentError(
                f"The function of the measure {name} takes {each}. Give its parameters names, "
                "without *."
            )
    known = PAIR_INPUTS if taken and taken[0].name in PAIR_INPUTS[:2] else LABEL_INPUTS
    inputs = tuple(each.name for each in taken if each.name in known)
    first = tuple(each.name for each in taken[: len(inputs)])
    if not inputs or first != tuple(each for each in known if each in inputs):
        raise ArgumentError(
            f"The function of the measure {name} takes {inspect.signature(function)}. Let it "
            f"begin with what it reads of {', '.join(LABEL_INPUTS)} (or, for preferences, of "
            f"{', '.join(PAIR_INPUTS)}), in this order."
        )
    hints, docs = _hints(function), _documented(function)
    rest = taken[len(inputs) :]
    own = []
    for each in rest:
        if each.name in {parameter.name for parameter in parameters}:
            continue
        if each.default is each.empty:
            if each.name in EVALUATION_ARGUMENTS:
                continue
            raise ArgumentError(
                f"{each.name} of the measure {name} has no default. Give it one, or ask for "
                f"what the evaluation knows: {', '.join(EVALUATION_ARGUMENTS)}."
            )
        parameter = _annotated(hints.get(each.name)) or Parameter(docs.get(each.name, ""))
        own.append(_parameter(parameter, each, hints.get(each.name), name))
    return Signature(inputs, tuple(each.name for each in rest), tuple(own))


def _parameter(
    parameter: Parameter, taken: inspect.Parameter, hint: Any, measure: str
) -> Parameter:
    """Complete a parameter by the name, type and default in the function."""
    if taken.name in EVALUATION_ARGUMENTS:
        if taken.default is not BY_CONVENTION:
            raise ArgumentError(
                f"{taken.name} of the measure {measure} has a default, but the evaluation gives "
                "it. Leave the default out; for a parameter that users may set, make it "
                "podium.measures.parameters.BY_CONVENTION; or choose another name."
            )
        return replace(parameter, name=taken.name)
    value_type = _value_type(hint, taken.default)
    complete = replace(parameter, name=taken.name, value_type=value_type)
    try:
        return replace(complete, default=complete.checked(taken.default))
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"{taken.name} of the measure {measure} is {taken.default!r} by default. Give a "
            "number, a boolean or a tuple of numbers."
        ) from error


def _value_type(hint: Any, default: object) -> type:
    """The type of a parameter: as annotated, else that of its default."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    hint = get_origin(hint) or hint
    return hint if hint in CHECKS else type(default)


def _annotated(hint: Any) -> Parameter | None:
    extras = getattr(hint, "__metadata__", ())
    return next((each for each in extras if isinstance(each, Parameter)), None)


def _hints(function: Callable[..., float]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:  # a name that is known only where the function was defined
        return {}


def _documented(function: Callable[..., float]) -> dict[str, str]:
    """Read the description of each parameter from ``Args:`` in the docstring."""
    section = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2]
    entries = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", section, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", doc) for name, doc in entries}
