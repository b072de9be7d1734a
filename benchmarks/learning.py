"""Learning: trees and linear rankers beside their peers, and what losses cost as lists grow.

    python -m benchmarks.learning [--quick]

Two threads for everybody. The linear ranker is timed on LETOR's MQ2007, which the project does
not hold; without it that part is left out. At full size the growth of losses is also drawn, in
docs/images/loss-growth.svg.
"""

from __future__ import annotations

from benchmarks._growth import growth
from benchmarks._growth_plot import draw
from benchmarks._report import Report, wants_quick
from benchmarks._training import support_vectors, trees


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    packages = ["numpy", "numba", "lightgbm", "xgboost-cpu", "scikit-learn", "clarabel"]
    report = Report("learning", quick, packages=packages)
    trees(report, quick)
    support_vectors(report, quick)
    points = growth(report, quick)
    if not quick:
        draw(points)
    report.finish()


if __name__ == "__main__":
    main()
