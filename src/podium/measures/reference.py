"""The reference page of measures and conventions, written from the registry."""

from __future__ import annotations

from dataclasses import fields

from podium.measures.conventions import Conventions
from podium.measures.parameters import Parameter
from podium.measures.presets import PRESETS, choices
from podium.measures.registry import MeasureDefinition, measure_definitions, names_of


def reference_page() -> str:
    """The page of all registered measures and all presets, as Markdown.

    Example:
        >>> page = reference_page()
        >>> page.splitlines()[0]
        '# Measures'
        >>> "## nDCG" in page and "| ties |" in page
        True
    """
    parts = [
        _HEAD,
        *map(_section, measure_definitions()),
        _CONVENTIONS,
        _choices(),
        _PRESETS,
        _presets(),
    ]
    return "\n\n".join(parts) + "\n"


_HEAD = """# Measures

A measure is a value: a Python expression, a text and a dictionary key. Call it to set parameters,
and `@` a number to look at the first documents only. In the formulas $y_i$ is the label of the
document at rank $i$."""

_CONVENTIONS = """## Conventions

Tools disagree on what a measure is. Each choice has a name in `Conventions`:"""

_PRESETS = """## Presets

The conventions of other tools, checked against the tools themselves. A choice that is not listed is
the default."""


def _section(definition: MeasureDefinition) -> str:
    example = f"{definition.name}@10" if definition.takes_cut_off else definition.name
    lines = [
        f"## {definition.name}",
        definition.doc,
        f"Written `{example}`{_also(definition)}.{_notes(definition)}",
    ]
    if definition.parameters:
        rows = [_row(each.name, _default(each), each.doc) for each in definition.parameters]
        lines.append(
            "\n".join([_row("parameter", "default", "what"), _row("---", "---", "---"), *rows])
        )
    return "\n\n".join(lines)


def _also(definition: MeasureDefinition) -> str:
    others = sorted(name for name in names_of(definition) if name != definition.name.lower())
    return f", also {', '.join(f'`{name}`' for name in others)}" if others else ""


def _notes(definition: MeasureDefinition) -> str:
    notes = []
    if not definition.takes_cut_off:
        notes.append(" It has no cut-off.")
    if not definition.larger_is_better:
        notes.append(" It is a loss.")
    if definition.on_pairs:
        notes.append(" Its truth is preferences.")
    elif definition.expected is None:
        notes.append(" It has no formula for the mean over ties.")
    return "".join(notes)


def _default(parameter: Parameter) -> str:
    return "by conventions" if parameter.default is None else f"`{parameter.default!r}`"


def _choices() -> str:
    """The conventions as a table, from the attributes' documentation."""
    descriptions: dict[str, str] = {}
    name = ""
    for line in (Conventions.__doc__ or "").partition("Attributes:")[2].splitlines():
        indent = len(line) - len(line.lstrip())
        if indent == 8:
            name, _, text = line.strip().partition(": ")
            descriptions[name] = text
        elif indent > 8 and name:
            descriptions[name] += " " + line.strip()
        elif line.strip() == "Example:":
            break
    defaults = Conventions()
    rows = [
        _row(each.name, f"`{getattr(defaults, each.name)!r}`", descriptions[each.name])
        for each in fields(Conventions)
        if each.name != "exceptions"
    ]
    return "\n".join([_row("choice", "default", "what"), _row("---", "---", "---"), *rows])


def _presets() -> str:
    rows = [
        _row(f"`{name}`", ", ".join(f"`{each}`" for each in choices(preset)) or "the default")
        for name, preset in PRESETS.items()
    ]
    return "\n".join([_row("preset", "choices"), _row("---", "---"), *rows])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
