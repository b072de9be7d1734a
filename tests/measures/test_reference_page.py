"""The reference page of measures says all there is."""

from dataclasses import fields

from podium.measures import Conventions
from podium.measures.presets import PRESETS
from podium.measures.reference import reference_page
from podium.measures.registry import measure_definitions, names_of


def test_all_measures_names_and_parameters() -> None:
    page = reference_page()
    for kind in measure_definitions():
        section = page.partition(f"\n## {kind.name}\n")[2].partition("\n## ")[0]
        assert section, kind.name
        for name in names_of(kind):
            assert name == kind.name.lower() or f"`{name}`" in section
        for parameter in kind.parameters:
            assert f"| {parameter.name} | " in section
            assert parameter.doc in section


def test_every_built_in_measure_is_documented_with_a_formula() -> None:
    for kind in measure_definitions():
        if kind.function.__module__.startswith("podium."):
            assert kind.doc.count("$$") == 2, kind.name


def test_all_conventions() -> None:
    page = reference_page()
    choices = page.partition("\n## Conventions\n")[2]
    for field in fields(Conventions):
        if field.name != "exceptions":
            assert f"| {field.name} | `{getattr(Conventions(), field.name)!r}` | " in choices
    for name in PRESETS:
        assert f"| `{name}` | " in choices
    assert "`AP: ties='together'`" in choices
    assert "`nothing_relevant=1`" in choices


def test_lines_are_tables_and_paragraphs() -> None:
    for line in reference_page().splitlines():
        if line.startswith("|"):
            assert line.endswith("|")
            assert line.count(" | ") in (1, 2), line
