"""Audits of models and labels from preferences: how often what they say is wrong."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

from benchmarks._gates import GateRow
from benchmarks._null_queries import Doubles
from podium.data import Judgments, read_pairs
from podium.data.preferences import Preferences
from podium.judging import preference_judgments
from podium.judging.agreement.coefficients import cluster_interval
from podium.judging.auditing.alt_test import alt_test
from podium.judging.auditing.audit import audit
from podium.judging.auditing.plan import plan_audit
from podium.judging.models.answer_log import ModelAnswer
from podium.kernels import Ints

PREFERENCES = Path(__file__).parents[2] / "shared/data/preferences/trec-dl21/human.pref"
_EPSILON = 0.15
_RIGHT = 0.82
"""How often a person is right: two of them agree on .70 of the units."""


def audit_rows(quick: bool) -> list[GateRow]:
    """Return each figure with its target."""
    rows = _labels(1 if quick else 20, 2 if quick else 10)
    repeats = 80 if quick else 1000
    # Three standard errors, where repeats are few.
    slack, power_slack = (
        3 * (share * (1 - share) / repeats) ** 0.5 if quick else 0.0 for share in (0.05, 0.8)
    )
    for units, per_query, correlation in (
        (90, 1, 0.0), (100, 10, 0.2), (100, 10, 0.5), (300, 10, 0.5), (300, 30, 0.5),
    ):  # fmt: skip
        passed = _replaced(units, per_query, correlation, repeats, behind=True)
        what = f'"replace" at the margin, {units} units, {per_query} per query, r = {correlation}'
        rows.append(GateRow(what, passed, 0.06 + slack, False, ""))
    for queries in (10, 20, 30):
        passed = _failing_replaced(queries, repeats)
        what = f'"replace" at the margin, {queries} queries of 10, wrong throughout in some'
        rows.append(GateRow(what, passed, 0.06 + slack, False, ""))
    for people, per_query in ((3, 1), (4, 1), (5, 1), (3, 5)):
        plan = plan_audit(
            people=people, agreement=_RIGHT**2 + (1 - _RIGHT) ** 2, width=0.5,
            per_query=per_query, correlation=0.3,
        )  # fmt: skip
        units = -(-plan.for_test // per_query) * per_query
        power = _replaced(units, per_query, 0.3, repeats, people=people)
        what = f"power of a planned audit, {people} people, {per_query} per query, {units} units"
        rows.append(
            GateRow(f"{what}: distance from .8", abs(power - 0.8), 0.1 + power_slack, False, "")
        )
    for queries in (10, 30):
        covered = _kappa_coverage(queries, *((60, 50) if quick else (500, 100)))
        low = 0.9 - (0.09 if quick else 0.0)
        rows.append(GateRow(f"kappa's 95 % interval, {queries} queries", covered, low, True, ""))
    for queries in (5, 10):
        called = _random_models(queries, 20 if quick else 200)
        what = f"a random model is said to be of use, {queries} queries"
        rows.append(GateRow(what, called, 0.05 + slack, False, ""))
    return rows


def _votes(
    random: np.random.Generator,
    rights: list[float],
    units: int,
    per_query: int,
    correlation: float,
) -> tuple[Doubles, Ints]:
    """Answers of annotators who are right so often, and units' queries.

    Some units of a query are judged as rightly as each other: those are a share of the square root
    of the correlation, so that it is the correlation of any two.
    """
    queries = np.arange(units) // per_query
    alike = random.random((queries[-1] + 1, len(rights)))[queries]
    own = random.random((units, len(rights)))
    drawn = np.where(random.random((units, 1)) < np.sqrt(correlation), alike, own)
    truth = random.integers(0, 2, units)[:, None]
    return np.where(drawn < rights, truth, 1 - truth).astype(float), queries


def _right_at_margin(people: int) -> float:
    """How often a model is right that is exactly epsilon behind people.

    It is behind where it is wrong, the person is right and the others are not divided equally, and
    the sign turns where most of the others are wrong.
    """
    others = people - 1
    rightly = np.arange(others + 1)
    lead = float(np.sign(2 * rightly - others) @ binom.pmf(rightly, others, _RIGHT))
    return _RIGHT - _EPSILON / lead


def _replaced(
    units: int,
    per_query: int,
    correlation: float,
    repeats: int,
    *,
    people: int = 3,
    behind: bool = False,
) -> float:
    """How often the model wins against half of the people."""
    random = np.random.default_rng([units, per_query, people])
    model = _right_at_margin(people) if behind else _RIGHT
    passed = 0
    for _ in range(repeats):
        votes, queries = _votes(random, [model, *[_RIGHT] * people], units, per_query, correlation)
        result = alt_test(votes[:, 0], votes[:, 1:], clusters=queries, epsilon=_EPSILON)
        passed += result is not None and result.passed
    return passed / repeats


def _failing_replaced(queries: int, repeats: int) -> float:
    """How often a model wins that is wrong throughout in some queries and else always right.

    Its three people are right in all but 3 % of the units, and so many queries fail that it is
    exactly epsilon behind.
    """
    random = np.random.default_rng(queries)
    right = 0.97
    # How often it is behind a person, less how often ahead, where it is wrong, and where right.
    where_wrong = right * (right**2 - (1 - right) ** 2)
    where_right = -(1 - right) * (right**2 - (1 - right) ** 2)
    share = (_EPSILON - where_right) / (where_wrong - where_right)
    passed = 0
    for _ in range(repeats):
        of_query = np.repeat(np.arange(queries), 10)
        truth = random.integers(0, 2, len(of_query))[:, None]
        people = random.random((len(of_query), 3)) < right
        model = (random.random(queries) >= share)[of_query]
        votes = np.where(np.column_stack([model, people]), truth, 1 - truth).astype(float)
        result = alt_test(votes[:, 0], votes[:, 1:], clusters=of_query, epsilon=_EPSILON)
        passed += result is not None and result.passed
    return passed / repeats


def _kappa(votes: Doubles) -> float:
    agree = float((votes[:, 0] == votes[:, 1]).mean())
    one, other = votes.mean(axis=0)
    chance = one * other + (1 - one) * (1 - other)
    return (agree - chance) / (1 - chance) if chance < 1 else float("nan")


def _kappa_of(votes: Doubles, units: Ints) -> float:
    return _kappa(votes[units])


def _kappa_coverage(queries: int, repeats: int, draws: int) -> float:
    random = np.random.default_rng(queries)
    truth = _kappa(_votes(random, [_RIGHT, _RIGHT], 1_000_000, 10, 0.5)[0])
    covered = 0
    for _ in range(repeats):
        votes, of_query = _votes(random, [_RIGHT, _RIGHT], 10 * queries, 10, 0.5)
        ends = cluster_interval(partial(_kappa_of, votes), of_query, draws=draws)
        covered += ends.low <= truth <= ends.high
    return covered / repeats


def _random_models(queries: int, repeats: int) -> float:
    """How often a model that guesses is said to be of use, from 10 units of each query."""
    random = np.random.default_rng(1)
    of_use = 0
    for _ in range(repeats):
        votes, of_query = _votes(random, [0.5, *[_RIGHT] * 3], 10 * queries, 10, 0.5)
        ids: list[tuple[str, ...]] = [
            (f"q{query}", f"d{unit}") for unit, query in enumerate(of_query)
        ]
        answers = [
            ModelAnswer(str(unit), "m", "r", "h", query, (document,), str(int(votes[unit, 0])))
            for unit, (query, document) in enumerate(ids)
        ]
        people = {
            name: dict(zip(ids, votes[:, column].tolist(), strict=True))
            for column, name in enumerate("abc", 1)
        }
        conclusion = audit(answers, people, draws=60).conclusion
        of_use += conclusion.decision in ("assist", "replace")
    return of_use / repeats


def _labels(shuffles: int, seeds: int) -> list[GateRow]:
    """Labels from the preferences of DL21, with lines in any order and any seed."""
    if not PREFERENCES.exists():
        return []
    pairs = read_pairs(PREFERENCES)
    queries = np.repeat(pairs.query_ids.to_pylist(), np.diff(pairs.offsets))
    left, right = (np.array(column.to_pylist()) for column in (pairs.left, pairs.right))
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        first = _by_document(preference_judgments(pairs))
        shuffled = set[tuple[str, str]]()
        for seed in range(shuffles):
            order = np.random.default_rng(seed).permutation(len(queries))
            other = Preferences.from_columns(
                queries[order], left[order], right[order], pairs.verdicts[order]
            )
            shuffled |= _changed(first, _by_document(preference_judgments(other)))
        seeded = set[tuple[str, str]]()
        for seed in range(1, seeds):
            seeded |= _changed(first, _by_document(preference_judgments(pairs, random_state=seed)))
    announced = int(str(notes[0].message).split()[2]) if notes else 0
    return [
        GateRow(f"labels that {shuffles} shuffles of lines change", len(shuffled), 0, False, ""),
        GateRow(
            f"labels that {seeds} seeds change, beyond the {announced} announced",
            max(len(seeded) - announced, 0),
            0,
            False,
            "",
        ),
    ]


def _by_document(judgments: Judgments) -> dict[tuple[str, str], float]:
    queries = np.repeat(judgments.query_ids.to_pylist(), np.diff(judgments.offsets)).tolist()
    keys = zip(queries, judgments.document_ids.to_pylist(), strict=True)
    return dict(zip(keys, judgments.labels.tolist(), strict=True))


def _changed(
    one: dict[tuple[str, str], float], other: dict[tuple[str, str], float]
) -> set[tuple[str, str]]:
    return {key for key, label in one.items() if other[key] != label}
