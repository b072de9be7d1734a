"""How far real people agree, on the sets of human preferences where they are present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._report import Report
from podium.judging.agreement import Agreement, Ratings
from podium.judging.agreement.coefficients import (
    bootstrap_agreement,
    fleiss_kappa,
    krippendorff_alpha,
)
from studies.real_votes import image_search_votes, trec_votes

_SETS = Path(__file__).parents[2] / "shared/data/preferences"
_FIGURES: dict[str, Callable[[Ratings], float]] = {
    "agreed, overall": lambda votes: Agreement.of(votes).overall,
    "agreed, without ties": lambda votes: Agreement.of(votes).without_ties,
    "Fleiss' kappa": fleiss_kappa,
    "Krippendorff's alpha, nominal": krippendorff_alpha,
    "Krippendorff's alpha, ordinal": lambda votes: krippendorff_alpha(votes, "ordinal"),
}


def report_agreement(report: Report, draws: int) -> None:
    """Print every figure with its 95 % interval."""
    if not _SETS.exists():
        report.note("agreement: the shared data sets are not here")
        return
    sets: dict[str, Callable[[], Ratings]] = {
        "image search, three people": lambda: image_search_votes(_SETS),
        "TREC Deep Learning 2021, crowd": lambda: trec_votes(_SETS, "trec-dl21/human.pref"),
        "TREC CAsT 2019, crowd": lambda: trec_votes(_SETS, "trec-cast19/crowd.pref"),
        "TREC CAsT 2019, staff": lambda: trec_votes(_SETS, "trec-cast19/local.pref"),
    }
    for name, read in sets.items():
        every = read()
        votes = np.bincount(every.units)
        report.note(
            f"{name}: {len(votes):,} pairs, {len(every.values):,} votes, "
            f"{(votes > 1).sum():,} pairs with two votes or more"
        )
        ballots = every.take(np.flatnonzero(votes > 1))
        with_ties = (ballots.values == 0).any()
        if with_ties:
            rows = [" ".join(f"{cell:.3f}" for cell in row) for row in Agreement.of(ballots).rows]
            report.note("  one said left, tie, right (rows), another (columns): " + "; ".join(rows))
        for label, figure in _FIGURES.items():
            if label.endswith(("ties", "ordinal")) and not with_ties:
                continue  # the same as the figure before where nobody may say tie
            interval = bootstrap_agreement(figure, ballots, draws=draws)
            report.note(
                f"  {label} {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
            )
