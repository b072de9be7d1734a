"""Xia et al. (2009): which losses find the right top 1, worked out and by experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.labels import from_ranks
from podium.losses import ListMLE, ListNet, Loss, RankCosine
from podium.rankers import LinearRanker
from studies.arrays import Doubles
from studies.claims import Claim, of_parts, table
from studies.consistency_tables import tables, tables_plan
from studies.parts import Part
from studies.plots import Panel, PlotLine, draw_panels
from studies.study import Setup, Study, Written

FULL: dict[str, Loss] = {
    "ListMLE": ListMLE(),
    "RankCosine": RankCosine(),
    "ListNet": ListNet(permutations=True),
}
TOP: dict[str, Loss] = {
    "top-1 ListMLE": ListMLE(k=1),
    "top-1 RankCosine": RankCosine(k=1),
    "top-1 ListNet": ListNet(k=1, permutations=True),
}
LOSSES = FULL | TOP
"""Each loss for whole orders, and its form for the top 1."""

ORDERS = ((0, 1, 2), (1, 0, 2), (2, 1, 0))
"""Proposition 10's three orders; the first has probability p1, the two others p2 each."""


def population_scores(loss: Loss, orders: Sequence[Sequence[int]], shares: Doubles) -> Doubles:
    """The scores, one an object, with the least expected loss over orders of known probability.

    Example:
        >>> scores = population_scores(ListMLE(k=1), ORDERS, np.array([0.5, 0.25, 0.25]))
        >>> int(scores.argmax())
        0
    """
    from scipy import optimize

    objects = len(orders[0])
    ranks = np.argsort(np.array(orders), axis=1) + 1
    labels = np.concatenate([from_ranks(each, k=objects) for each in ranks]).astype(float)
    offsets = np.arange(0, len(labels) + 1, objects)

    def risk(scores: Doubles) -> tuple[float, Doubles]:
        evaluation = loss.evaluate(
            np.tile(scores, len(orders)), labels, offsets, query_weights=shares
        )
        # A tiny penalty: where shares are 0 the minimum would be at infinity.
        return (
            evaluation.total + 5e-7 * float(scores @ scores),
            evaluation.gradient.reshape(-1, objects).sum(axis=0) + 1e-6 * scores,
        )

    start = 1e-3 * np.random.default_rng(0).standard_normal(objects)
    minimum = optimize.minimize(
        risk,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": 1e-11, "ftol": 1e-15, "maxiter": 2000},
    )
    scores: Doubles = minimum.x
    return scores


def proposition_10(points: int) -> dict[str, Any]:
    """Which object each loss ranks first, as the share p1 of people who are right rises."""
    shares = np.linspace(1 / 3 + 1e-3, 0.999, points)
    curves: dict[str, Any] = {"p1": shares.tolist()}
    for name, loss in LOSSES.items():
        leads = []
        for p1 in shares:
            p2 = (1 - p1) / 2
            scores = population_scores(loss, ORDERS, np.array([p1, p2, p2]))
            spread = float(np.ptp(scores))
            leads.append(float(scores[0] - scores[1:].max()) / spread if spread else 0.0)
        curves[name] = leads
    return curves


def drawn_people(sizes: Sequence[int], repeats: int, p1: float) -> dict[str, Any]:
    """How often each loss finds the right top 1 from the orders of a sample of people."""
    random = np.random.default_rng(1)
    shares = np.array([p1, (1 - p1) / 2, (1 - p1) / 2])
    right = {name: np.zeros(len(sizes)) for name in LOSSES}
    for index, size in enumerate(sizes):
        for _ in range(repeats):
            counted = random.multinomial(size, shares) / size
            for name, loss in LOSSES.items():
                right[name][index] += population_scores(loss, ORDERS, counted).argmax() == 0
    hit_rates = {name: (values / repeats).tolist() for name, values in right.items()}
    return {"sizes": list(sizes), "repeats": repeats, "p1": p1, "right": hit_rates}


def _divided_queries(queries: int, documents: int, seed: int) -> Dataset:
    """Queries with one document that divides people: 40 % put it first, the others last.

    The others are put in order by their quality, of which a feature says something; the second
    feature marks the document that divides. The right top 1 is that document: nobody else is
    put first by as many.
    """
    random = np.random.default_rng(seed)
    quality = random.standard_normal((queries, documents))
    divides = np.zeros((queries, documents))
    divides[:, 0] = 1.0
    taste = quality + random.gumbel(size=(queries, documents))
    taste[:, 0] = np.where(random.random(queries) < 0.4, 1e3, -1e3)
    ranks = np.argsort(np.argsort(-taste, axis=1), axis=1) + 1
    # Labels from 1 down to 1 / n: with n down to 1, ListNet's exponentials hardly see any but the
    # first. A constant is a feature because RankCosine, unlike the others, sees where 0 is.
    labels = np.concatenate([from_ranks(each, k=documents) for each in ranks]) / documents
    columns = [quality.ravel(), divides.ravel(), np.ones(quality.size)]
    features = np.column_stack(columns).astype(np.float32)
    return Dataset.from_arrays(features, labels=labels, group=[documents] * queries)


def learned_rankers(sizes: Sequence[int], documents: int, tests: int) -> dict[str, Any]:
    """How often a linear ranker's first result is the first choice of somebody new."""
    test = _divided_queries(tests, documents, 10_000)
    forms = {
        name: type(loss)
        for name, loss in (
            ("ListMLE", ListMLE()),
            ("RankCosine", RankCosine()),
            ("ListNet", ListNet()),
        )
    }
    losses = {
        f"{before}{name}": make(k=k)
        for before, k in (("", None), ("top-1 ", 1), ("top-3 ", 3))
        for name, make in forms.items()
    }
    hit_rates: dict[str, list[list[float]]] = {name: [] for name in losses}
    first = test.labels.reshape(tests, documents) == 1
    for size in sizes:
        for name, loss in losses.items():
            hits = []
            for seed in range(3):
                train = _divided_queries(size, documents, seed)
                scores = LinearRanker(loss, alpha=1e-3).fit(train).predict(test)
                chosen = scores.reshape(tests, documents).argmax(axis=1)
                hits.append(float(first[np.arange(tests), chosen].mean()))
            hit_rates[name].append([float(np.mean(hits)), float(np.std(hits))])
    return {"sizes": list(sizes), "documents": documents, "tests": tests, "hits": hit_rates}


def _parts(setup: Setup) -> list[Part]:
    sizes: Sequence[int] = (10, 30, 100, 300, 1000, 3000, 10_000, 100_000)
    queries: Sequence[int] = (30, 100, 300, 1000, 3000)
    repeats = 300
    if setup.quick:
        sizes, repeats, queries = (30, 1000), 10, (30, 300)
    return [
        Part("proposition-10", proposition_10, (9 if setup.quick else 67,)),
        Part("people", drawn_people, (sizes, repeats, 0.4)),
        Part("rankers", learned_rankers, (queries, 10, 500 if setup.quick else 5000)),
    ]


def _write(results: Mapping[str, Any], setup: Setup, images: Path) -> Written:
    claims, sections = [], []
    if "proposition-10" in results:
        claim, section = _worked_out(results["proposition-10"])
        claims.append(claim)
        sections.append(section)
    if {"proposition-10", "people", "rankers"} <= set(results):
        _draw(results, images / "consistency.svg")
        claim, section = _experiments(results)
        claims.append(claim)
        sections.append(section)
    more, table_sections = tables(setup)
    return Written([*claims, *more], [*sections, *table_sections])


def _turns(p1: Sequence[float], leads: Sequence[float]) -> float | None:
    """From which share on the right object is first; None if always."""
    wrong = [share for share, lead in zip(p1, leads, strict=True) if lead <= 0]
    return max(wrong) if wrong else None


def _worked_out(curves: Mapping[str, Any]) -> tuple[Claim, str]:
    turns = {name: _turns(curves["p1"], curves[name]) for name in LOSSES}
    rows = [
        [name, "always" if turn is None else f"only above {turn:.2f}"]
        for name, turn in turns.items()
    ]
    wrong_full = all(turns[name] is not None for name in FULL)
    right_top = all(turns[name] is None for name in TOP)
    thresholds = ", ".join(f"{name} below {turns[name] or 0:.2f}" for name in FULL)
    return Claim(
        "Xia'09",
        "Proposition 10",
        "a loss for whole orders may be inconsistent with the top-1 true loss",
        f"at the exact minimum the wrong object is first while p1 is low: {thresholds}; their "
        "top-1 forms " + ("are right for every p1 above 1/3" if right_top else "fail, too"),
        of_parts(wrong_full, right_top),
    ), (
        "## Proposition 10 worked out\n\nThree objects. A share p1 of people say 1, 2, 3; the "
        "others are divided evenly between 2, 1, 3 and 3, 2, 1. Object 1 is put first by most "
        "people as "
        "soon as p1 is above 1/3, so it is the right top 1. Object 2 is second or better with "
        "everybody, and a loss that asks for the whole order prefers it.\n\n"
        + table(["loss", "object 1 is first for p1 from 1/3 on"], rows)
    )


def _experiments(results: Mapping[str, Any]) -> tuple[Claim, str]:
    people, rankers = results["people"], results["rankers"]
    last = {name: values[-1] for name, values in people["right"].items()}
    hits = {name: values[-1][0] for name, values in rankers["hits"].items()}
    full = ", ".join(f"{name} {last[name]:.0%}" for name in FULL)
    top = ", ".join(f"{name} {last[name]:.0%}" for name in TOP)
    holds = max(last[name] for name in FULL) < 0.05 and min(last[name] for name in TOP) > 0.95
    ahead = all(hits[f"top-1 {name}"] > hits[name] for name in FULL)
    size, count = people["sizes"][-1], rankers["sizes"][-1]
    rows = [
        [name, *(f"{value:.1%} ± {spread:.1%}" for value, spread in values)]
        for name, values in rankers["hits"].items()
    ]
    head = ["loss", *(f"{size:,} queries" for size in rankers["sizes"])]
    return Claim(
        "Xia'09",
        "Theorem 6, by experiment",
        "top-k forms are consistent with the top-k true loss under mild conditions",
        f"right top 1 from {size:,} people: {full}; {top}",
        of_parts(holds, ahead),
        f"linear rankers of {count:,} queries show the first choice of somebody new first with "
        + ", ".join(f"{name} {hits[name]:.0%}, top-1 {hits[f'top-1 {name}']:.0%}" for name in FULL),
    ), (
        "## Convergence\n\nLeft: proposition 10 at the exact minimum. Middle: the orders of so "
        f"many people are drawn with p1 = {people['p1']:.2f}, {people['repeats']} times; bands "
        "are 95 % "
        "intervals. More people make a loss for whole orders surer of the wrong object. Right: "
        f"linear rankers on queries of {rankers['documents']} documents, one of which 40 % of "
        "people put first and the others last, the rest by a quality that is a feature; to show "
        "that "
        "document first is right 40 % of the time.\n\n"
        "![Which losses find the right top 1](../images/consistency.svg)\n\n"
        "First choice of somebody new, mean and standard deviation over three training sets:\n\n"
        + table(head, rows)
    )


def _draw(results: Mapping[str, Any], file: Path) -> None:
    exact, people, rankers = results["proposition-10"], results["people"], results["rankers"]
    draws = []
    for name in LOSSES:
        share = np.array(people["right"][name])
        swing = 1.96 * np.sqrt(share * (1 - share) / people["repeats"])
        low, high = (share - swing).tolist(), (share + swing).tolist()
        draws.append(
            PlotLine(name, people["sizes"], share.tolist(), low, high, dashed=name in FULL)
        )
    hits = []
    for name in LOSSES:
        mean, spread = np.array(rankers["hits"][name]).T
        low, high = mean - 2 * spread, mean + 2 * spread
        hits.append(PlotLine(name, rankers["sizes"], mean, low, high, dashed=name in FULL))
    panels = [
        Panel(
            "Proposition 10, exact", "share p1 of people who put object 1 first",
            "lead of object 1 (share of the range of scores)",
            [PlotLine(name, exact["p1"], exact[name], dashed=name in FULL) for name in LOSSES],
            marks={"right above": 0.0},
        ),
        Panel("Drawn people", "people", "right top 1 (share of draws)", draws, log=True),
        Panel("Linear rankers", "training queries", "first choice is first", hits, log=True),
    ]  # fmt: skip
    draw_panels(file, panels, columns=3, below=True)


STUDY = Study(
    "consistency",
    "Consistency with the top-k true loss",
    "Xia et al. 2009: which losses find the right top 1, and their tables 1 and 4.",
    """
Xia et al. (*Statistical consistency of top-k ranking*, NIPS 2009) show that ListMLE, RankCosine and
ListNet, which ask for whole orders, may converge to a wrong top 1, and that their top-k forms do
not. The proposition is computed exactly, tested in experiments, and the paper's tables on OHSUMED
are compared with the [leaderboard](leaderboard.md)'s.
""",
    "OHSUMED of LETOR 2.0 for tables 1 and 4; all else is simulated.",
    _parts,
    _write,
    tables_plan,
)
