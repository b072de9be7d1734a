"""Rankers from clicks, intervals, judgments that clicks save, hostile and large logs.

    python -m benchmarks.clicks [--quick]

Reads ../shared/data where it is present. The learning table is that of `python -m studies clicks`,
whose results are kept in build/; --quick computes a small one anew. The log-likelihood is compared
with CLAX where clax-models is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks._click_coverage import Figure, coverage_rows
from benchmarks._click_likelihood import likelihood_rows
from benchmarks._click_logs import hostile_rows, size_rows
from benchmarks._click_people import sample_rows, saving_rows
from benchmarks._report import Report, wants_quick
from studies.clicks import (
    STUDY,
    SWITCHES,
    WAYS,
    biased_and_identifiable,
    differences,
    parts,
    run_quick,
)
from studies.parts import read_parts
from studies.study import Setup, run_study

DATA = Path("../shared/data")
BUILD = Path("build")


def learning_rows(report: Report, quick: bool) -> list[Figure]:
    """Return whether `auto` is never below clicks as they are, and ahead of engines' switches."""
    if quick:
        cells = run_quick(DATA)
    else:
        setup = Setup(BUILD, DATA)
        run_study(STUDY, setup)
        cells = read_parts(parts(setup), setup.folder(STUDY.name) / "results.parquet").values
    for name, cell in cells.items():
        means = "  ".join(f"{way} {np.mean(cell['values'][way]['nDCG@10']):.4f}" for way in WAYS)
        report.note(f"{name} ({cell['verdict']}; auto: {cell['chosen']}): {means}")
    below = sum(p < 0.05 and mean < 0 for mean, p in differences(cells, "auto", "naive").values())
    figures = [Figure(f"logs of {len(cells)} with auto significantly below naive", below, 0, False)]
    chosen = biased_and_identifiable(cells)
    for switch in SWITCHES:
        ahead = [mean > 0 for mean, _ in differences(chosen, "auto", switch).values()]
        figures.append(
            Figure(
                f"logs, biased and identifiable, with auto ahead of {switch}", sum(ahead),
                len(ahead), unit=f"of {len(ahead)}",
            )
        )  # fmt: skip
    return figures


def _noted(report: Report, measured: tuple[Iterable[Figure], Iterable[str]]) -> Iterable[Figure]:
    figures, notes = measured
    for note in notes:
        report.note(note)
    return figures


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report("clicks", quick, packages=["lightgbm", "duckdb"])
    rows: dict[str, Callable[[], Iterable[Figure]]] = {
        "coverage": lambda: _noted(report, coverage_rows(quick)),
        "log-likelihood": lambda: _noted(report, likelihood_rows(quick)),
        "saved judgments": lambda: _noted(report, saving_rows(quick)),
        "hostile logs": lambda: hostile_rows(quick),
        "large logs": lambda: _noted(report, size_rows(quick)),
    }
    if DATA.exists():
        rows = {
            "learning": lambda: learning_rows(report, quick),
            "the sample": lambda: _noted(report, sample_rows(DATA)),
        } | rows
    else:
        report.note(f"{DATA} is not there: rankers from clicks and the sample are left out")
    for name, part in rows.items():
        start = time.perf_counter()
        for figure in part():
            report.check(*figure)
        report.note(f"{name}: {time.perf_counter() - start:.0f} s")
    report.finish()


if __name__ == "__main__":
    main()
