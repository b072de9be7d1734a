"""The benchmarks' shared report: what it prints and how it exits."""

import io
import math
from functools import partial
from types import SimpleNamespace

import pytest
from rich.console import Console

from benchmarks import _report
from benchmarks._report import Report, median_seconds


def finish(*checks: tuple[float, float, bool]) -> tuple[int, str]:
    output = io.StringIO()
    report = Report(
        "sample", quick=True, packages=["numpy"], console=Console(file=output, width=120)
    )
    report.note("7 rows [of 9]")
    for number, (measured, target, at_least) in enumerate(checks):
        report.check(f"figure {number}", measured, target, at_least, unit="s")
    with pytest.raises(SystemExit) as ended:
        report.finish()
    assert isinstance(ended.value.code, int)
    return ended.value.code, output.getvalue()


def test_all_hold() -> None:
    code, text = finish((12345.6, 1.5, True), (2.0, 2.0, True), (0.01234, 0.75, False))
    assert code == 0
    assert "podium" in text
    assert "numpy" in text
    assert "7 rows [of 9]" in text
    assert "12,346 s" in text
    assert "0.0123 s" in text
    assert "≥ 1.5 s" in text
    assert "≤ 0.75 s" in text
    assert text.rstrip().endswith("sample: 3 of 3 targets hold")


@pytest.mark.parametrize(
    "check", [(1.0, 1.5, True), (1.0, 0.5, False), (math.nan, 1.0, True), (math.nan, 1.0, False)]
)
def test_one_miss_fails(check: tuple[float, float, bool]) -> None:
    code, text = finish((2.0, 1.0, True), check)
    assert code == 1
    assert "NO" in text
    assert "1 of 2 targets hold" in text


def test_no_target_fails() -> None:
    assert finish()[0] == 1


def test_functions_run_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    now = 0.0
    seconds = {"a": iter([9.0, 1.0, 2.0]), "b": iter([5.0, 5.0, 5.0]), "c": iter([0.5, 3.0, 1.0])}

    def work(name: str) -> None:
        nonlocal now
        calls.append(name)
        now += next(seconds[name])

    monkeypatch.setattr(_report, "time", SimpleNamespace(perf_counter=lambda: now))
    medians = median_seconds({name: partial(work, name) for name in "abc"}, 3)
    assert "".join(calls) == "abcabcabc"
    assert medians == {"a": 2.0, "b": 5.0, "c": 1.0}
