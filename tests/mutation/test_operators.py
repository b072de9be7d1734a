"""What mutants are made of a source file, and which are not."""

import tomllib

import pytest

from tests.mutation.operators import mutants_of
from tests.mutation.targets import ROOT, modules

SOURCE = '''"""A module."""

LIMIT = 5


def least(values, *, start=0):
    """The least value."""
    if not values or start < LIMIT:
        raise ValueError("no value above 5")
    found = min(values)
    found += 1
    return found
'''


def test_each_mutant_changes_one_place() -> None:
    found = {(mutant.before, mutant.after) for mutant in mutants_of("a.py", SOURCE)}
    assert found == {
        ("LIMIT = 5", "LIMIT = 6"),
        ("def least(values, *, start=0):", "def least(values, *, start=1):"),
        *(
            ("if not values or start < LIMIT:", after)
            for after in (
                "if not (not values or start < LIMIT):",
                "if not values and start < LIMIT:",
                "if (values) or start < LIMIT:",
                "if not values or start <= LIMIT:",
            )
        ),
        ('raise ValueError("no value above 5")', "pass"),
        ("found = min(values)", "found = None"),
        ("found = min(values)", "found = max(values)"),
        ("found += 1", "found -= 1"),
        ("found += 1", "found += 2"),
        ("found += 1", "pass"),
        ("return found", "return None"),
    }


def test_mutants_know_their_place() -> None:
    mutants = mutants_of("a.py", SOURCE)
    lines = SOURCE.splitlines()
    for mutant in mutants:
        assert lines[mutant.line - 1].strip() == mutant.before
        assert mutant.where == ("" if mutant.before.startswith("LIMIT") else "least")
        assert mutant.diff == f"-{mutant.before}\n+{mutant.after}"
        assert mutant.text == SOURCE.replace(mutant.before, mutant.after)


def test_arguments_in_the_middle_of_a_call() -> None:
    source = "value = call(\n    1,\n    ddof=n,\n    axis=m,\n)\n"
    found = {mutant.text for mutant in mutants_of("a.py", source)}
    assert found == {
        source.replace("1", "2"),
        source.replace("ddof=n,", ""),
        source.replace("axis=m,", ""),
    }


def test_modules_are_found_by_area_and_by_name() -> None:
    (statistics,) = modules(["statistics"])
    assert statistics.name == "measures.comparison.statistics"
    studio = {module.name for module in modules(["studio"])}
    assert {"studio.judging.service", "studio.web.access", "studio.settings"} <= studio
    assert all(name == "studio" or name.startswith("studio.") for name in studio)
    assert {
        "losses.list_mle",
        "measures.definitions.cumulative_gain",
        "judging.algorithms.min_heap",
    } <= {module.name for module in modules([])}


def test_every_module_has_tests_that_may_cover_it() -> None:
    every = modules([])
    for module in every:
        assert any(place.startswith("tests/") for place in module.tests), module.name
    assert len(every) == len({module.name for module in every})


def test_compiled_loops_are_measured_as_plain_python() -> None:
    plain = {module.name for module in modules([]) if module.plain}
    assert {
        "measures.definitions.cumulative_gain",
        "losses.squared_error",
        "measures.compiled.ranking",
    } <= plain
    assert not {"measures.comparison.compare", "studio.judging.service", "judging.session"} & plain


@pytest.mark.long
def test_mutants_known_to_change_nothing_are_mutants_of_the_code() -> None:
    entries = tomllib.loads((ROOT / "tests/mutation/equivalent.toml").read_text())["mutant"]
    files = {entry["file"] for entry in entries}
    mutants = {file: mutants_of(file, (ROOT / file).read_text()) for file in files}
    for entry in entries:
        found = (each for each in mutants[entry["file"]] if each.where == entry["where"])
        known = (entry["before"], entry["after"])
        assert known in {(each.before, each.after) for each in found}, entry
