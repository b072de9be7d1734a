"""Niu et al. (2012), tables 1 to 3: the user study of pairs against five grades, simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.judging import HABITS, Grade, Outcome, SimulatedAssessor, Verdict, rotate
from podium.judging.agreement import Agreement, Ratings, inferred_verdicts
from podium.judging.agreement.matrix import compare_agreement
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.selection import Algorithm, run_selection
from podium.judging.assessors.simulated import GRADE_SECONDS, PAIR_SECONDS, Habits
from podium.judging.kndcg import k_ndcg
from studies.heap_readings import WITH_TIES, papers_heap, textbook
from studies.judging_ways import OTHERS, PODIUM, mean_and_error, play_ways
from studies.labeling_page import write
from studies.parts import Part
from studies.real_votes import image_search_votes
from studies.study import Setup, Study

ITEMS, K, QUERIES = 50, 10, 50
PEOPLE = ("ann", "bob", "cem", "dia", "eva")

PAPERS_HEAP = "heap as the paper's people may have used it"
GRADES = "five grades"
SAME_PAIRS = "five grades, on the pairs that the heap asked"

WAYS: dict[str, tuple[Algorithm[int], bool]] = {
    PAPERS_HEAP: (textbook(tie_replaces=True), False),
    "heap (Algorithm 1)": (ALGORITHMS["heap"], False),
    "Podium's default (adaptive)": (ALGORITHMS["adaptive"], True),
}
"""An algorithm each, and whether verdicts that others imply are left out."""

NOISES: dict[str, Habits] = {
    "real": HABITS["real"],
    "tie-prone": HABITS["tie-prone"],
    "ties only": WITH_TIES,
}
"""How people judge: as real ones who compared images, with twice their ties, with ties alone."""


def user_study(noise: str, repeats: int) -> dict[str, Any]:
    """Five people judge 50 queries of 50 documents by pairs and by grades, two people per query.

    Returns:
        For each method the judgments of each session, the κ-NDCG@10 of its result, and the counts
        of two people's verdicts on the same pair.
    """
    habits = NOISES[noise]
    names = (*WAYS, GRADES)
    tables = {name: np.zeros((3, 3), np.int64) for name in (*names, SAME_PAIRS)}
    chi: dict[str, list[list[float]]] = {name: [] for name in WAYS}
    judgments: dict[str, list[int]] = {name: [] for name in names}
    quality: dict[str, list[float]] = {name: [] for name in names}
    for repeat in range(repeats):
        agreements: dict[str, Agreement] = {}
        asked: dict[str, list[tuple[str, str]]] = {}
        for name in names:
            logs: dict[str, list[Any]] = {}
            mode = "grades" if name == GRADES else "pairs"
            for assignment in _assigned(mode):
                log, top, count = _judge_query(
                    name, assignment.assessor, assignment.query, habits, repeat
                )
                logs.setdefault(assignment.query, []).extend(log)
                judgments[name].append(count)
                relevance = _relevance(assignment.query, repeat)
                quality[name].append(k_ndcg(top, list(relevance.values()), K))
            if mode == "grades":
                agreements[SAME_PAIRS] = _agreement(
                    {query: inferred_verdicts(log, asked[query]) for query, log in logs.items()}
                )
                logs = {query: list(inferred_verdicts(log)) for query, log in logs.items()}
            elif name == PAPERS_HEAP:
                asked = {query: _asked(log) for query, log in logs.items()}
            agreements[name] = _agreement(logs)
        for name, agreement in agreements.items():
            tables[name] += agreement.table
        for name in WAYS if habits.noise else ():  # without noise nobody disagrees
            chi[name].append(
                [
                    compare_agreement(agreements[name], agreements[GRADES], ties=ties).statistic
                    for ties in (True, False)
                ]
            )
    return {
        "repeats": repeats,
        "tables": {name: table.tolist() for name, table in tables.items()},
        "chi-square": chi,
        "judgments": judgments,
        "quality": {name: np.round(values, 6).tolist() for name, values in quality.items()},
    }


def _agreement(logs: Mapping[str, Sequence[Any]]) -> Agreement:
    return Agreement.of(Ratings.from_logs(logs))


def _asked(log: Sequence[Verdict]) -> list[tuple[str, str]]:
    """The distinct pairs that were judged."""
    return sorted({(min(each.left, each.right), max(each.left, each.right)) for each in log})


def _assigned(mode: str) -> list[Any]:
    queries = [f"q{number}" for number in range(QUERIES)]
    return [each for each in rotate(queries, PEOPLE, rounds=2) if each.mode == mode]


def _relevance(query: str, repeat: int) -> dict[str, float]:
    drawn = np.random.default_rng([repeat, int(query[1:])]).standard_normal(ITEMS)
    return {f"d{index:02d}": float(value) for index, value in enumerate(drawn)}


def _judge_query(
    way: str, person: str, query: str, habits: Habits, repeat: int
) -> tuple[list[Any], list[int], int]:
    """Simulate one person judging one query: the log, the top k, and the number of judgments."""
    relevance = _relevance(query, repeat)
    items = list(relevance)
    seed = 1000 * repeat + int(query[1:])
    judge = SimulatedAssessor(relevance, habits, name=person, random_state=seed)
    if way == GRADES:
        grades = [judge.grade(item) for item in items]
        order = np.argsort(-np.array(grades) - np.random.default_rng(seed).random(ITEMS))
        log = [Grade(item, grade, person) for item, grade in zip(items, grades, strict=True)]
        return log, order[:K].tolist(), ITEMS
    verdicts: list[Verdict] = []

    def answer(left: int, right: int) -> Outcome:
        outcome = judge(items[left], items[right])
        verdicts.append(Verdict(items[left], items[right], outcome, person))
        return outcome

    algorithm, infer = WAYS[way]
    selected = run_selection(algorithm, ITEMS, K, answer, infer=infer)
    return verdicts, selected.top, selected.judgments


def readings(runs: int) -> list[str]:
    """The judgments the paper's heap takes, under each reading that its text allows."""
    return papers_heap(runs)


def quality_by_minutes(simulations: int) -> dict[str, Any]:
    """κ-NDCG@10 against the minutes spent on a query, with the paper's seconds per judgment."""
    budgets = (10, 20, 30, 40, 50, 60, 80, 100, 120, 150)
    ways = {name: way for name, way in (PODIUM | OTHERS).items() if name in _SHOWN}
    quality = play_ways(ways, HABITS["real"], simulations, budgets)
    lines = {}
    for name, values in quality.items():
        means, errors = mean_and_error(values)
        seconds = GRADE_SECONDS if name == GRADES else PAIR_SECONDS
        lines[name] = {
            "minutes": (np.array(budgets) * seconds / 60).tolist(),
            "means": means.tolist(),
            "errors": errors.tolist(),
        }
    return {"simulations": simulations, "lines": lines}


_SHOWN = ("heap", "adaptive", "careful", GRADES)


def real_people(data: Path) -> dict[str, Any]:
    """How far three real people agree on pairs of images, as the matrix of tables 2 and 3."""
    agreement = Agreement.of(image_search_votes(data / "preferences"))
    return {"table": agreement.table.tolist()}


def _parts(setup: Setup) -> list[Part]:
    repeats = 1 if setup.quick else 20
    parts = [
        *(
            Part(f"study-{noise.replace(' ', '-')}", user_study, (noise, repeats))
            for noise in NOISES
        ),
        Part("readings", readings, (30 if setup.quick else 1000,)),
        Part("minutes", quality_by_minutes, (3 if setup.quick else 90,)),
    ]
    if setup.has("preferences/image-search"):
        parts.append(Part("images", real_people, (setup.data,)))
    return parts


STUDY = Study(
    "labeling",
    "Pairs against five grades",
    "Niu et al. 2012, tables 1 to 3: pairs against five grades.",
    """
Niu et al. (*Top-k learning to rank: labeling, ranking and evaluation*, SIGIR 2012) had five people
judge 50 queries of 50 documents with two tools: T1 asks which of two pages is better and finds the
ordered top 10 with a heap, T2 asks for one of five grades. Their people are not available. Here
simulated people do the same study, with the same rotation: verdicts are true relevance plus noise,
and the noise and the ties are those of real people who compared images, fitted to 124,614 of their
verdicts. The seconds per judgment are the paper's: 5.51 per pair, 13.87 per grade; nobody was timed
here.
""",
    "image pairs judged by three people each (Xie et al., SIGIR 2020), for one matrix; all else is "
    "simulated.",
    _parts,
    write,
)
