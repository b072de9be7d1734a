"""Things by name: losses, rankers, formats, algorithms, models and what else users may add to."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from podium.errors import ArgumentError

_Thing = TypeVar("_Thing")


class Registry(UserDict[str, _Thing]):
    """A dictionary in which a name belongs to one thing for good.

    Another thing under a name that is taken is an error: what a command or a saved file means by
    the name would depend on what was imported last. The same definition may come again, as when a
    module is reloaded or a notebook's cell is run twice.

    Args:
        what: What it holds, for messages: "loss".
        things: What it holds from the start.

    Example:
        >>> engines = Registry("engine", {"lightgbm": 1})
        >>> engines["lightgbm"] = 2
        Traceback (most recent call last):
        podium.errors.ArgumentError: The name 'lightgbm' belongs to another engine: 1. ...
        >>> engines.named("lightbgm")
        Traceback (most recent call last):
        podium.errors.ArgumentError: There is no engine 'lightbgm'. Did you mean: lightgbm?
    """

    def __init__(self, what: str, things: dict[str, _Thing] | None = None) -> None:
        self.what = what
        super().__init__(things or {})

    def __setitem__(self, name: str, thing: _Thing) -> None:
        held = self.data.get(name, thing)
        if held is not thing and not same_definition(held, thing):
            raise ArgumentError(
                f"The name {name!r} belongs to another {self.what}: {_told(held)}",
                hint="Choose another name.",
            )
        super().__setitem__(name, thing)

    def named(self, name: str, *, also: Iterable[str] = ()) -> _Thing:
        """The thing of a name, in any case; if there is none, an error that offers the nearest.

        Args:
            name: The name.
            also: Names that are known elsewhere, to offer them too.
        """
        if name in self.data:
            return self.data[name]
        by_lower = {known.lower(): known for known in self.data}
        if name.lower() in by_lower:
            return self.data[by_lower[name.lower()]]
        raise unknown(self.what, name, [*self.data, *also])


def unknown(what: str, name: str, known: Iterable[str] | Mapping[str, str]) -> ArgumentError:
    """The error for a name that nothing has, with the nearest names or all there are.

    Args:
        what: What was asked for.
        name: By which name.
        known: All names, or for each way to write one the name to offer.

    Example:
        >>> print(unknown("test", "z", ["t", "sign"]))
        There is no test 'z'. Choose: t, sign.
    """
    offers = known if isinstance(known, Mapping) else {each: each for each in known}
    by_lower = {written.lower(): offer for written, offer in offers.items()}
    near = get_close_matches(name.lower(), by_lower, n=3)
    offered = ", ".join(dict.fromkeys(by_lower[each] for each in near or by_lower))
    hint = f"Did you mean: {offered}?" if near else f"Choose: {offered}."
    return ArgumentError(f"There is no {what} {name!r}", hint=hint)


def same_definition(one: Any, other: Any) -> bool:
    """Whether two objects are of one definition that was run twice, or equal.

    Example:
        >>> same_definition(len, len), same_definition(len, max), same_definition((1,), (1,))
        (True, False, True)
    """
    if hasattr(one, "__qualname__") and hasattr(other, "__qualname__"):
        return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)
    if is_dataclass(one) and type(one) is type(other):
        names = [field.name for field in fields(one)]
        return all(same_definition(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def _told(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None)
    return repr(thing) if name is None else f"{thing.__module__}.{name}"
