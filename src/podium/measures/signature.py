"""Reading from the signature of a measure's function what it takes and which parameters it has."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from podium.errors import ArgumentError
from podium.measures.arguments import EVALUATION_ARGUMENTS
from podium.measures.parameters import BY_CONVENTION, CHECKS, Parameter

LABEL_INPUTS = ("labels", "ideal", "ties", "size")
PAIR_INPUTS = ("better", "worse", "size")


@dataclass(frozen=True)
class Signature:
    """What a function takes.

    Attributes:
        inputs: Of one query, a part of ``LABEL_INPUTS`` or of ``PAIR_INPUTS`` in their order.
        arguments: The names of what follows, in order: what an evaluation tells and parameters.
        parameters: The measure's parameters among the arguments.
    """

    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @classmethod
    def of(
        cls, function: Callable[..., float], name: str, parameters: Sequence[Parameter] = ()
    ) -> Signature:
        """Read the signature of a function of a measure.

        Args:
            function: The function.
            name: The name of the measure, for messages.
            parameters: Parameters that the measure has already: another function of it may take
                them by their names alone, and has no others.

        Example:
            >>> def screen(labels, ideal, cut, fade=0.8): ...
            >>> signature = Signature.of(screen, "screen")
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
        return cls(inputs, tuple(each.name for each in rest), tuple(own))


def _parameter(
    parameter: Parameter, taken: inspect.Parameter, hint: Any, measure: str
) -> Parameter:
    """Complete a parameter by what the function says of it."""
    if taken.name in EVALUATION_ARGUMENTS:
        if taken.default is not BY_CONVENTION:
            raise ArgumentError(
                f"{taken.name} of the measure {measure} has a default, but the evaluation gives "
                "it. Leave the default out, or choose another name."
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
    """Read what the docstring says of each parameter under ``Args:``."""
    section = (inspect.getdoc(function) or "").partition("\nArgs:\n")[2]
    entries = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", section, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", doc) for name, doc in entries}
