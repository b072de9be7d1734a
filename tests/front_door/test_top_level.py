"""``import podium`` and ``python -m podium``: what is typed first."""

import subprocess
import sys

import pytest

import podium
from tests.fresh_interpreter import loaded

PACKAGES = {
    "data",
    "measures",
    "rankers",
    "losses",
    "aggregation",
    "judging",
    "cluster",
    "utility",
    "export",
    "explain",
    "monitoring",
}
OTHERS = ("clicks", "features", "serving", "studio", "tracking")


def test_every_listed_name_is_there() -> None:
    assert dir(podium) == sorted(podium.__all__)
    assert all(getattr(podium, name) is not None for name in podium.__all__)
    assert {*PACKAGES, *OTHERS} < set(podium.__all__)


def test_every_package_is_an_attribute() -> None:
    packages = sorted({*PACKAGES, *OTHERS})
    # In a process of its own: what a test imported before is an attribute already.
    code = "import podium; print([getattr(podium, name).__name__ for name in {}])"
    done = subprocess.run(
        [sys.executable, "-c", code.format(packages)], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == str([f"podium.{name}" for name in packages])


def test_names_typed_first_are_listed() -> None:
    first = {"evaluate", "compare", "Dataset", "TreeRanker", "LinearRanker", "load_ranker"}
    assert first | {"nDCG", "AP", "ERR", "RR", "P", "R"} <= set(dir(podium))


def test_every_measure_is_public() -> None:
    # In an interpreter of its own, for other tests define measures.
    code = """
from podium import measures
from podium.measures import registry
defined = [each.name for each in registry.measure_definitions()]
private = [
    name for name in defined
    if name not in measures.__all__ or getattr(measures, name) != registry.Measure(name)
]
print(len(defined) > 20, private)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="No podium attribute evalute"):
        podium.evalute  # type: ignore[attr-defined]  # noqa: B018


def test_dir_loads_nothing() -> None:
    brought = loaded("import podium; dir(podium)") - loaded("pass")
    assert {name for name in brought if name.startswith("podium")} == {"podium"}


def test_measures_load_no_ranker() -> None:
    brought = loaded("import podium; podium.nDCG @ 10")
    assert not brought & {"sklearn", "lightgbm", "pandas", "polars", "podium.rankers"}


def test_module_runs_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "podium", "--version"], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, f"podium {podium.__version__}\n")


def test_usage_of_the_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "podium", "--help"], capture_output=True, text=True, timeout=300
    )
    assert "Usage: python -m podium " in done.stdout
