"""Registries of named objects that users can extend: losses, formats, export targets and more."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from podium.errors import ArgumentError

_Value = TypeVar("_Value")


class Registry(UserDict[str, _Value]):
    """A dictionary in which a name, once taken, keeps its value.

    Registering a different value under a taken name is an error: the meaning of a command or a
    saved file would depend on what was imported last. The same definition may be registered again,
    as when a module is reloaded or a notebook cell is run twice.

    Args:
        kind: What the values are, for messages: "loss".
        entries: The initial entries.

    Example:
        >>> engines = Registry("engine", {"lightgbm": 1})
        >>> engines["lightgbm"] = 2
        Traceback (most recent call last):
        podium.errors.ArgumentError: The name 'lightgbm' belongs to another engine: 1. ...
        >>> engines.named("lightbgm")
        Traceback (most recent call last):
        podium.errors.ArgumentError: There is no engine 'lightbgm'. Did you mean: lightgbm?
    """

    def __init__(self, kind: str, entries: dict[str, _Value] | None = None) -> None:
        self.kind = kind
        super().__init__(entries or {})

    def __setitem__(self, name: str, value: _Value) -> None:
        existing = self.data.get(name, value)
        if existing is not value and not same_definition(existing, value):
            raise ArgumentError(
                f"The name {name!r} belongs to another {self.kind}: {_describe(existing)}",
                hint="Choose another name.",
            )
        super().__setitem__(name, value)

    def named(self, name: str, *, also: Iterable[str] = ()) -> _Value:
        """Look up a name, ignoring case; an unknown name is an error that suggests similar ones.

        Args:
            name: The name.
            also: Further names to suggest, known elsewhere.
        """
        if name in self.data:
            return self.data[name]
        by_lower = {known.lower(): known for known in self.data}
        if name.lower() in by_lower:
            return self.data[by_lower[name.lower()]]
        raise unknown_name(self.kind, name, [*self.data, *also])


def unknown_name(kind: str, name: str, known: Iterable[str] | Mapping[str, str]) -> ArgumentError:
    """Build the error for an unknown name, suggesting similar names or listing all.

    Args:
        kind: What was looked up.
        name: The unknown name.
        known: All names, or a mapping from each accepted spelling to the name to suggest.

    Example:
        >>> print(unknown_name("test", "z", ["t", "sign"]))
        There is no test 'z'. Choose: t, sign.
    """
    suggestion_of = known if isinstance(known, Mapping) else {each: each for each in known}
    by_lower = {written.lower(): suggestion for written, suggestion in suggestion_of.items()}
    near = get_close_matches(name.lower(), by_lower, n=3)
    suggestions = ", ".join(dict.fromkeys(by_lower[each] for each in near or by_lower))
    hint = f"Did you mean: {suggestions}?" if near else f"Choose: {suggestions}."
    return ArgumentError(f"There is no {kind} {name!r}", hint=hint)


def same_definition(first: Any, second: Any) -> bool:
    """Whether two objects are equal, or come from the same definition run twice.

    Example:
        >>> same_definition(len, len), same_definition(len, max), same_definition((1,), (1,))
        (True, False, True)
    """
    if hasattr(first, "__qualname__") and hasattr(second, "__qualname__"):
        return (first.__module__, first.__qualname__) == (second.__module__, second.__qualname__)
    if is_dataclass(first) and type(first) is type(second):
        names = [field.name for field in fields(first)]
        return all(same_definition(getattr(first, name), getattr(second, name)) for name in names)
    if hasattr(first, "__dict__") and not callable(first):
        return same_definition(type(first), type(second)) and bool(vars(first) == vars(second))
    return bool(first == second)


def _describe(value: Any) -> str:
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{value.__module__}.{name}"
