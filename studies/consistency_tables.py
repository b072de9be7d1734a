"""Tables 1 to 6 of Xia et al. (2009) beside the leaderboard's figures."""

from __future__ import annotations

from collections.abc import Mapping

from studies.claims import Claim, of_parts, table
from studies.leaderboard import LeaderboardPlan
from studies.standings import Standing, collect
from studies.study import Setup

_COLUMNS = ("letor:nDCG@1", "letor:nDCG@3", "letor:nDCG@10", "P@1", "P@3", "P@10")

TABLE_1 = {
    "ListMLE": (0.548, 0.473, 0.446, 0.642, 0.582, 0.495),
    "top-1 ListMLE": (0.529, 0.482, 0.447, 0.652, 0.595, 0.499),
    "top-3 ListMLE": (0.535, 0.484, 0.445, 0.671, 0.608, 0.504),
    "top-10 ListMLE": (0.558, 0.473, 0.444, 0.672, 0.601, 0.509),
}
TABLE_4 = {
    "RankBoost": (0.497, 0.472, 0.435, 0.604, 0.586, 0.495),
    "RankSVM": (0.495, 0.464, 0.441, 0.633, 0.592, 0.507),
    "ListNet": (0.523, 0.477, 0.448, 0.642, 0.602, 0.509),
    "RankCosine": (0.523, 0.475, 0.437, 0.642, 0.589, 0.493),
    "top-10 ListMLE": (0.558, 0.473, 0.444, 0.672, 0.601, 0.509),
}
_DATA = "OHSUMED-2"
_ABSENT = {
    "Table 2": "TD2003: top-k forms of ListMLE far ahead (N@10 0.378 against 0.261)",
    "Table 3": "TD2004: top-k forms of ListMLE far ahead (N@10 0.472 against 0.356)",
    "Table 5": "TD2003: top-10 ListMLE ahead of four other models",
    "Table 6": "TD2004: top-10 ListMLE ahead of four other models",
}


def tables_plan(setup: Setup) -> LeaderboardPlan | None:
    """The lines of the leaderboard that the tables need, if their data are there."""
    if setup.data is None or not setup.has("letor/OHSUMED-2"):
        return None
    return LeaderboardPlan(
        setup.data,
        setup.folder("leaderboard"),
        (_DATA,),
        tuple({**TABLE_1, **TABLE_4}),
        ("graded",),
        folds=1 if setup.quick else 5,
        quick=setup.quick,
    )


def tables(setup: Setup) -> tuple[list[Claim], list[str]]:
    """The claims, and a section with both tables."""
    plan = tables_plan(setup)
    standings = [] if plan is None else collect(plan.tasks(), plan.results)
    claims, sections = [], []
    for number, published in ((1, TABLE_1), (4, TABLE_4)):
        if standings and set(published) <= set(standings[0].rows):
            claim, section = _beside(number, published, standings[0])
            claims.append(claim)
            sections.append(section)
        else:
            claims.append(Claim("Xia'09", f"Table {number}", "OHSUMED", "—", "not run"))
    why = "the set is not available here; the linear rankers above replace it: a synthetic set in "
    why += "which whole orders mislead"
    claims += [Claim("Xia'09", item, says, "—", "not run", why) for item, says in _ABSENT.items()]
    return claims, sections


def _beside(
    number: int, published: Mapping[str, tuple[float, ...]], standing: Standing
) -> tuple[Claim, str]:
    rows, inside, total = [], 0, 0
    for entry, figures in published.items():
        cells = []
        for column, figure in zip(_COLUMNS, figures, strict=True):
            mean, low, high = standing.interval(entry, column)
            inside += low <= figure <= high
            total += 1
            cells.append(f"{mean:.3f} ({figure:.3f})")
        rows.append([entry, *cells])
    means = {entry: standing.rows[entry].mean("letor:nDCG@10") for entry in published}
    spread = max(means.values()) - min(means.values())
    _, low, high = standing.interval("top-10 ListMLE", "letor:nDCG@10")
    agrees = inside == total
    if number == 1:
        says = "on OHSUMED all forms of ListMLE are comparable (N@10 0.444 to 0.447)"
        holds = spread < (high - low) / 2
    else:
        says = "top-10 ListMLE fairly well beside others, N@1 and P@1 best by far"
        firsts = {entry: standing.rows[entry].mean("letor:nDCG@1") for entry in published}
        holds = max(firsts, key=firsts.__getitem__) == "top-10 ListMLE"
    claim = Claim(
        "Xia'09",
        f"Table {number}",
        says,
        f"N@10 {min(means.values()):.3f} to {max(means.values()):.3f}; {inside} of {total} figures "
        "of the paper are in our 95 % intervals",
        of_parts(agrees, holds),
        "" if holds else "top-10 ListMLE is not first at N@1 here: "
        + ", ".join(
            f"{entry} {standing.rows[entry].mean('letor:nDCG@1'):.3f}" for entry in published
        ),
    )  # fmt: skip
    swings = [
        (high - low) / 2
        for _, low, high in (
            standing.interval("top-10 ListMLE", column) for column in (_COLUMNS[0], _COLUMNS[2])
        )
    ]
    queries = len(standing.rows["top-10 ListMLE"].values["P@1"])
    head = ["model", *(column.removeprefix("letor:") for column in _COLUMNS)]
    section = (
        f"## Table {number}: OHSUMED\n\nMeans over the {queries} test queries, nDCG by LETOR's "
        "own script; the paper's figure in brackets. A "
        f"95 % interval is about ± {swings[0]:.3f} at N@1 and ± {swings[1]:.3f} at N@10, so "
        "differences of the size that the paper reports on this set tell nothing.\n\n"
        + table(head, rows)
    )
    return claim, section
