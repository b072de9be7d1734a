"""The registry of measures and the decorator that fills it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.errors import ArgumentError
from podium.measures.compiled.loops import Compiled, compile_function
from podium.measures.compiled.ranked import MeasureFunction
from podium.measures.value import Measure, Parameter, Value
from podium.registry import same_definition
from podium.registry import unknown_name as no_such


@dataclass(frozen=True, eq=False)
class Kind:
    """All that is known of a measure: its function, its parameters and how it behaves.

    Attributes:
        name: The name by which it is written.
        function: Its value for one query; NaN where there is nothing to find.
        expected: Its mean over all orders of documents with equal scores, if it has a formula.
        parameters: In the order in which they are written.
        takes_cut_off: Whether ``@`` a number makes sense.
        needs_ideal: Whether the function reads the labels of the pool.
        larger_is_better: False for losses.
        on_pairs: Whether the truth is a list of preferred pairs rather than labels.
        knows_together: Whether it can give documents with one score one rank.
        ideal_by_gain: Whether its ideal ranking is by gain, should that not be by label.
    """

    name: str
    function: MeasureFunction
    expected: MeasureFunction | None
    parameters: tuple[Parameter, ...]
    takes_cut_off: bool
    needs_ideal: bool
    larger_is_better: bool
    on_pairs: bool
    knows_together: bool
    ideal_by_gain: bool

    def parameter(self, name: str) -> Parameter:
        """A parameter by its name."""
        for each in self.parameters:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.parameters) or "none"
        raise ArgumentError(f"{self.name} has no parameter {name!r}", hint=f"It has: {known}.")

    @property
    def doc(self) -> str:
        """What the measure is, for the reference page."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def compiled(self) -> Compiled | None:
        """The function compiled, or None if Numba cannot (it then runs as Python)."""
        return _compiled(self.function, self.on_pairs)

    @cached_property
    def compiled_expected(self) -> Compiled | None:
        """The mean over tied orders compiled, or None if there is none."""
        return None if self.expected is None else _compiled(self.expected, self.on_pairs)


@dataclass(frozen=True)
class Alias:
    """Another name of a measure, with the parameters that it implies."""

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()


_KINDS: dict[str, Kind] = {}
_NAMES: dict[str, Alias] = {}


def measure(
    name: str,
    *,
    parameters: Sequence[Parameter] = (),
    aliases: Sequence[str] | Mapping[str, Mapping[str, Value]] = (),
    expected: MeasureFunction | None = None,
    takes_cut_off: bool = True,
    needs_ideal: bool = True,
    larger_is_better: bool = True,
    on_pairs: bool = False,
    knows_together: bool = False,
    ideal_by_gain: bool = False,
) -> Callable[[MeasureFunction], Measure]:
    """Register a function of one ranked query as a measure.

    The function takes ``(query, settings)``, see ``Ranked`` and ``Settings``, and returns the
    query's value, or NaN where there is nothing to find. Its docstring is the measure's reference.
    It is compiled with Numba if that is possible and runs as Python if not.

    Args:
        name: How the measure is written; names are told apart without regard to case.
        parameters: Its parameters; a user's measure finds them in ``settings.own``.
        aliases: Other names, as a list, or with the parameters that each implies.
        expected: The mean of the function over all orders of documents with equal scores.
        takes_cut_off: Whether ``@`` a number makes sense.
        needs_ideal: Whether the function reads ``query.ideal``.
        larger_is_better: False for losses.
        on_pairs: Whether the truth is a list of preferred pairs.
        knows_together: Whether it honours ``settings.together``.
        ideal_by_gain: Whether ``query.ideal`` is to be by gain where users give gains that do not
            rise with the labels.

    Example:
        >>> @measure("TopLabel")
        ... def top_label(query, settings):
        ...     "The label of the first document."
        ...     return query.labels[0] if query.size else 0.0
        >>> from podium.measures import evaluate
        >>> evaluate(top_label, labels=[0, 3, 1], scores=[0.1, 0.7, 0.2], group=[3]).means
        {TopLabel: 3.0}
    """

    def register(function: MeasureFunction) -> Measure:
        kind = Kind(
            name=name,
            function=function,
            expected=expected,
            parameters=tuple(parameters),
            takes_cut_off=takes_cut_off,
            needs_ideal=needs_ideal,
            larger_is_better=larger_is_better,
            on_pairs=on_pairs,
            knows_together=knows_together,
            ideal_by_gain=ideal_by_gain,
        )
        implied = aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}
        names = {name.lower(): Alias(name)}
        names |= {
            alias.lower(): Alias(name, tuple(given.items())) for alias, given in implied.items()
        }
        for each in names:
            holder = _NAMES.get(each)
            if holder and not same_definition(_KINDS[holder.name].function, function):
                raise ArgumentError(
                    f"The name {each!r} belongs to the measure {holder.name}. Choose another."
                )
        taken = inspect.signature(function)
        if len(taken.parameters) != 2:
            raise ArgumentError(
                f"The function of the measure {name} takes {taken}. Let it take (query, settings)."
            )
        _KINDS[name] = kind
        _NAMES.update(names)
        return Measure(name)

    return register


def kinds() -> list[Kind]:
    """All measures, by name."""
    return [_KINDS[name] for name in sorted(_KINDS, key=str.lower)]


def names_of(kind: Kind) -> dict[str, Alias]:
    """The names of a measure, in lower case, its own among them."""
    return {name: alias for name, alias in _NAMES.items() if alias.name == kind.name}


def kind_of(measure: Measure) -> Kind:
    """What is known of a measure."""
    if measure.name not in _KINDS:
        raise unknown(measure.name)
    return _KINDS[measure.name]


def find(name: str) -> Measure | None:
    """The measure of a name or an alias in any case, or None."""
    alias = _NAMES.get(name.lower())
    return None if alias is None else Measure(alias.name)(**dict(alias.parameters))


def unknown(name: str) -> ArgumentError:
    """The error for a name that no measure has."""
    written = sorted(_NAMES.items(), key=lambda each: each[1].name.lower())
    return no_such("measure", name, {way: alias.name for way, alias in written})


def _compiled(function: MeasureFunction, on_pairs: bool) -> Compiled | None:
    try:
        return compile_function(function, on_pairs=on_pairs)
    # Not only NumbaError: what Numba does not expect in a function ends in errors of any type.
    except Exception as error:
        if on_pairs:
            raise ArgumentError(
                f"Numba cannot compile {function.__name__}, a measure of pairs. Write it with "
                f"numbers and loops only. {error}"
            ) from error
        return None
