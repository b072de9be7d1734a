"""Clicks beside people: judgments that a prior of clicks saves, and the sample's agreement."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._click_coverage import Figure
from podium.clicks import (
    ClickLog,
    SimulatedUser,
    fit_clicks,
    import_clicks,
    label_clicks,
    simulate_clicks,
)
from podium.data import Dataset, Judgments
from podium.errors import DataError
from podium.judging import audit
from podium.judging.algorithms import ALGORITHMS
from podium.judging.algorithms.selection import run_selection
from podium.judging.assessors.simulated import HABITS, SimulatedAssessor
from podium.judging.kndcg import k_ndcg
from podium.judging.models.answer_log import ModelAnswer

ITEMS, TOP = 24, 10
SEARCHES = (0, 5, 20, 80, 320)


def saving_rows(quick: bool) -> tuple[list[Figure], list[str]]:
    """Return how many pairs people judge with clicks as a prior, over the searches per query."""
    queries = 16 if quick else 300
    random = np.random.default_rng(41)
    relevance = random.standard_normal(queries * ITEMS)
    attractive = 1 / (1 + np.exp(1.5 - 1.5 * relevance))
    order = relevance + 1.5 * random.standard_normal(len(relevance))
    data = Dataset.from_arrays(
        order[:, None], np.log2(1 + attractive / attractive.max()), group=[ITEMS] * queries
    )
    judgments, quality = {}, {}
    for searches in SEARCHES:
        starts = np.tile(random.permutation(ITEMS), (queries, 1))
        if searches:
            with tempfile.TemporaryDirectory() as folder:
                log = simulate_clicks(
                    data, f"{folder}/log", user=SimulatedUser("pbm", noise=0.0), policy="1",
                    searches=searches, depth=TOP, shuffled=0.3, random_state=searches,
                )  # fmt: skip
                starts = _order_of_clicks(log, queries)
        played = [_play(relevance.reshape(queries, ITEMS)[n][starts[n]], n) for n in range(queries)]
        judgments[searches], quality[searches] = np.mean(played, axis=0)
    none = judgments[0]
    notes = [
        f"{searches} searches a query: {judgments[searches]:.1f} pairs of people, "
        f"{1 - judgments[searches] / none:+.0%} saved, κ-NDCG {quality[searches]:.3f}"
        for searches in SEARCHES
    ]
    most = SEARCHES[-1]
    return [
        Figure(f"pairs saved by clicks of {most} searches", 1 - judgments[most] / none, 0.1),
        Figure(
            "κ-NDCG with clicks as a prior, less that without", quality[most] - quality[0], -0.01
        ),
    ], notes


def _order_of_clicks(log: ClickLog, queries: int) -> Any:
    """Return the documents of each query by the label of clicks; those never shown come last."""
    labels = np.full((queries, ITEMS), -1.0)
    table = fit_clicks(log, "pbm", depth=TOP).labels()
    rows = np.array(table["query"].to_pylist(), int)
    labels[rows, np.array(table["document_id"].to_pylist(), int)] = table["label"].to_numpy()
    return np.argsort(-labels, axis=1)


def _play(relevance: Any, seed: int) -> tuple[float, float]:
    judge = SimulatedAssessor[int](relevance.tolist(), HABITS["real"], random_state=seed)
    selected = run_selection(ALGORITHMS["adaptive"], ITEMS, TOP, judge)
    return selected.judgments, k_ndcg(selected.top, relevance, TOP)


def sample_rows(data: Path) -> tuple[list[Figure], list[str]]:
    """Return how far labels of the sample's clicks agree with people (ESCI)."""
    folder = data / "clicks" / "chorus-ubi"
    with gzip.open(folder / "esci_us_judgments.json.gz") as file:
        content = json.load(file)
    grades = {100.0: 3, 10.0: 2, 1.0: 1, 0.0: 0}
    votes = {
        (each["query"], rating["docId"]): float(grades[float(rating["rating"])])
        for each in content["judgmentRatings"]
        for rating in each["ratings"]
    }
    people = Judgments.from_columns(
        [query for query, _ in votes], [document for _, document in votes], list(votes.values())
    )
    notes = []
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stderr(io.StringIO()):
        log = import_clicks(folder / "ubi_queries_events.ndjson.gz", f"{temporary}/log")
        common = 0
        for model in ("ctr", "sdbn", "coec"):
            try:
                labels = label_clicks(fit_clicks(log, model), people=people)
            except DataError as error:
                notes.append(f"the sample, {model}: {error}")
                continue
            answers = [
                ModelAnswer(f"{row['query']}/{row['document_id']}", model, "grades", "",
                            row["query"], (row["document_id"],), f"{min(row['grade'], 3)}")
                for row in labels.table.to_pylist()
            ]  # fmt: skip
            result = audit(answers, {"esci": votes})  # type: ignore[dict-item]
            common = max(common, len(result.sample.units))
            kappa = result.with_people
            notes.append(
                f"the sample, {model}: {len(result.sample.units)} documents of "
                f"{len(set(result.sample.clusters))} queries judged by both, kappa "
                f"{kappa.value:.3f} [{kappa.low:.3f}, {kappa.high:.3f}]; "
                f"{result.conclusion.sentence}"
            )
    return [Figure("documents of the sample with clicks and people's judgments", common, 20)], notes
