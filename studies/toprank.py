"""Cheng et al. (2014), figures 2 to 4: slack against margin scaling, and aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.measures.comparison.statistics import paired_difference
from studies.claims import Claim, ClaimVerdict, table
from studies.leaderboard import LeaderboardPlan
from studies.plots import Panel, PlotLine, draw_panels
from studies.standings import Standing, collect
from studies.study import Setup, Study, Written

MODELS = ("TopMargin", "TopSlack", "TopRank")
BASELINES = ("regression", "RankSVM", "ListNet", "top-10 ListMLE")
MEASURES = ("letor:nDCG@1", "letor:nDCG@3", "letor:nDCG@10", "P@1", "P@3", "P@10")
_SETS = {"OHSUMED-2": "letor/OHSUMED-2", "MQ2007": "letor/MQ2007", "MQ2008": "letor/MQ2008"}
_QUICK_SETS = ("OHSUMED-2",)


def _plan(setup: Setup) -> LeaderboardPlan | None:
    names = _QUICK_SETS if setup.quick else tuple(_SETS)
    there = tuple(name for name in names if setup.has(_SETS[name]))
    if setup.data is None or not there:
        return None
    return LeaderboardPlan(
        setup.data,
        setup.folder("leaderboard"),
        there,
        (*MODELS, *BASELINES),
        ("graded",),
        folds=1 if setup.quick else 5,
        quick=setup.quick,
    )


def _write(_results: Mapping[str, Any], setup: Setup, images: Path) -> Written:
    plan = _plan(setup)
    standings = [] if plan is None else collect(plan.tasks(), plan.results)
    standings = [each for each in standings if set(each.rows) >= {*MODELS, *BASELINES}]
    if not standings:
        claims = [Claim("Cheng'14", f"Figure {n}", "", "—", "not run") for n in (2, 3, 4)]
        return Written(claims, [])
    _draw(standings, images / "toprank.svg")
    claims = [
        _duel(2, "TopSlack", "TopMargin", "TopSlack ahead in 12 of 18 points", 12 / 18, standings),
        _duel(3, "TopRank", "TopSlack", "TopRank ahead in all points", 1.0, standings),
        _against_all(standings),
    ]
    return Written(claims, [_CAPTION, *(_table(each) for each in standings)])


_WHY = (
    "TD2003 and TD2004 are not available; MQ2007 and MQ2008 replace them beside OHSUMED of "
    "LETOR 2.0"
)


def _duel(
    number: int,
    model: str,
    baseline: str,
    says: str,
    required_share: float,
    standings: Sequence[Standing],
) -> Claim:
    counts, ahead, surely, behind, total = [], 0, 0, 0, 0
    for standing in standings:
        differences = [standing.against(model, baseline, measure) for measure in MEASURES]
        wins = sum(difference > 0 for difference, _p in differences)
        surely += sum(difference > 0 and p < 0.05 for difference, p in differences)
        behind += sum(difference < 0 and p < 0.05 for difference, p in differences)
        ahead, total = ahead + wins, total + len(differences)
        counts.append(f"{standing.collection} {wins} of {len(differences)}")
    share = ahead / total
    verdict: ClaimVerdict = "partly" if share > 0.5 else "not reproduced"
    if share >= required_share and surely and not behind:
        verdict = "reproduced"
    return Claim(
        "Cheng'14",
        f"Figure {number}",
        says,
        f"{model} ahead of {baseline} in {ahead} of {total} points ({', '.join(counts)}); "
        f"at p < 0.05 ahead in {surely}, behind in {behind}",
        verdict,
        f"{_WHY}; models are trained for nDCG only, P is measured on the same",
    )


def _against_all(standings: Sequence[Standing]) -> Claim:
    best = second = total = 0
    for standing in standings:
        for measure in MEASURES:
            means = sorted(
                (standing.rows[name].mean(measure) for name in (*BASELINES, *MODELS)), reverse=True
            )
            own = standing.rows["TopRank"].mean(measure)
            total += 1
            best += own >= means[0]
            second += own == means[1] and own < means[0]
    verdict: ClaimVerdict = "partly" if 2 * (best + second) > total else "not reproduced"
    if best >= 11 / 18 * total and best + second == total:
        verdict = "reproduced"
    return Claim(
        "Cheng'14",
        "Figure 4",
        "TopRank best in 11 of 18 points and second in the others",
        f"best in {best} of {total} points, second in {second}",
        verdict,
        _WHY,
    )


_CAPTION = """## Slack, margin, aggregation and baselines

![All models against TopRank at six measures](../images/toprank.svg)

Mean differences from TopRank over all test queries, graded truth, nDCG by LETOR's own script. The
band is the paired 95 % interval of TopSlack; the others' are about as wide. A line below 0 is a
model behind TopRank.
"""


def _draw(standings: Sequence[Standing], file: Path) -> None:
    panels = []
    positions = [float(position) for position in range(len(MEASURES))]
    for standing in standings:
        lines = []
        own = standing.rows["TopRank"].values
        for name in ("TopSlack", "TopMargin", *BASELINES):
            values = standing.rows[name].values
            differences = [
                paired_difference(values[each], own[each], tests=("t",)) for each in MEASURES
            ]
            band = name == "TopSlack"
            lines.append(
                PlotLine(
                    name,
                    positions,
                    [each.mean for each in differences],
                    [each.low for each in differences] if band else (),
                    [each.high for each in differences] if band else (),
                    dashed=not band,
                )
            )
        ticks = [measure.removeprefix("letor:") for measure in MEASURES]
        panels.append(
            Panel(
                standing.collection,
                "measure",
                "difference from TopRank",
                lines,
                ticks=ticks,
                marks={"TopRank": 0.0},
            )
        )
    draw_panels(file, panels, columns=3, below=True)


def _table(standing: Standing) -> str:
    rows = []
    for name in (*MODELS, *BASELINES):
        cells = []
        for measure in MEASURES:
            mean, low, _ = standing.interval(name, measure)
            cells.append(f"{mean:.4f} ± {mean - low:.3f}")
        rows.append([name, *cells])
    head = ["model", *(measure.removeprefix("letor:") for measure in MEASURES)]
    return f"### {standing.collection}\n\n" + table(head, rows)


STUDY = Study(
    "toprank",
    "TopRank: slack scaling and aggregation",
    "Cheng et al. 2014, figures 2 to 4: slack scaling and aggregation.",
    """
Cheng et al. (*TopRank: a novel top-k ranking method based on rank aggregation*, 2014) train a
structural SVM for the top of the list with slack scaling (TopSlack) instead of margin scaling
(TopMargin), let regression, RankSVM and ListNet rerank its candidates, and combine their votes by
supervised Kemeny (TopRank). Their claims: TopSlack is mostly ahead of TopMargin, TopRank ahead of
TopSlack everywhere, and best or second best of all. The fits are those of the
[leaderboard](leaderboard.md).
""",
    "all folds of OHSUMED (LETOR 2.0), MQ2007 and MQ2008, by the leaderboard's results.",
    lambda _setup: [],
    _write,
    _plan,
    needs_data=True,
)
