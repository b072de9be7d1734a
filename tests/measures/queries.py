"""Rankings with judgments for tests: made by Hypothesis, and real ones."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from podium.data import (
    Judgments,
    Rankings,
    read_letor,
    read_qrels,
    read_run,
)
from podium.kernels import Floats, Ints
from tests.data.shared_files import shared

RUNS = (
    *("NLE_P_v1", "TUW_TAS-B_768", "bcai_p_vbert", "ielab-uniCOIL", "mono_d3", "p_bm25"),
    *("p_bm25rm3", "p_fusion10", "pash_f3", "uogTrPot5", "watprf", "yorku21_a"),
)
"""The runs of the TREC Deep Learning track 2021 in the shared data."""

Arrays = tuple[Floats, Floats, Ints]
"""Labels, scores and the number of documents of each query."""


@st.composite
def arrays(draw: st.DrawFn, *, highest: int = 4, size: int = 30) -> Arrays:
    """A few queries as learning-to-rank tools take them, many of their scores tied."""
    group = draw(st.lists(st.integers(1, size), min_size=1, max_size=4))
    rows = sum(group)
    labels = draw(st.lists(st.integers(0, highest), min_size=rows, max_size=rows))
    distinct = draw(st.sampled_from([2, 5, 1000]))
    scores = draw(st.lists(st.integers(0, distinct), min_size=rows, max_size=rows))
    return (
        np.array(labels, np.float32),
        np.array(scores, np.float32) / np.float32(8),
        np.array(group),
    )


@st.composite
def judged_runs(draw: st.DrawFn, lowest: int = 0, size: int = 30) -> tuple[Judgments, Rankings]:
    """Judgments and a run by id: documents unjudged, documents not retrieved, scores tied."""
    topics, documents, labels = [], [], []
    run_topics, run_documents, scores = [], [], []
    for topic in range(draw(st.integers(1, 3))):
        names = draw(
            st.lists(
                st.text("abé0", min_size=1, max_size=4), min_size=1, max_size=size, unique=True
            )
        )
        grades = [draw(st.none() | st.integers(lowest, 3)) for _ in names]
        indices = [draw(st.none() | st.integers(0, 9)) for _ in names]
        if all(grade is None or grade < 0 for grade in grades):
            grades[0] = 0  # trec_eval reads outside of its arrays if all are negative
        if all(index is None for index in indices):
            indices[-1] = 1
        for name, grade, index in zip(names, grades, indices, strict=True):
            if grade is not None:
                topics.append(f"t{topic}")
                documents.append(name)
                labels.append(grade)
            if index is not None:
                run_topics.append(f"t{topic}")
                run_documents.append(name)
                scores.append(index / 4)
    return (
        Judgments.from_columns(topics, documents, labels),
        Rankings.from_columns(run_topics, run_documents, scores),
    )


@cache
def dl21(run: str) -> tuple[Judgments, Rankings]:
    """A run of the Deep Learning track 2021 and the judgments."""
    judgments = read_qrels(shared("trec/qrels.dl21-passage.txt.gz"))
    return judgments, read_run(shared(f"trec/dl21-runs/{run}.run.gz"))


def dl21_arrays(run: str) -> Arrays:
    """The same as learning-to-rank tools take it: what is not judged has label 0."""
    judgments, rankings = dl21(run)
    joined = rankings.join(judgments)
    labels = np.nan_to_num(joined.labels)
    return labels, joined.scores.astype(np.float32), np.diff(joined.offsets)


@cache
def mq2008(feature: int) -> Arrays:
    """Part of LETOR's MQ2008 ranked by one of its features, which has many ties."""
    data = read_letor(shared("letor/MQ2008/S1.txt.gz"))
    return data.labels, data.features[:, feature - 1].copy(), data.sizes


def as_dicts(
    judgments: Judgments, rankings: Rankings
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgments and a run as the Python tools of the TREC world take them."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    rows = zip(
        judgments.query_id_of_row().to_pylist(),
        judgments.document_ids.to_pylist(),
        judgments.labels.tolist(),
        strict=True,
    )
    for topic, document, label in rows:
        qrels.setdefault(topic, {})[document] = int(label)
    listed = zip(
        rankings.query_id_of_row().to_pylist(),
        rankings.document_ids.to_pylist(),
        rankings.scores.tolist(),
        strict=True,
    )
    for topic, document, score in listed:
        run.setdefault(topic, {})[document] = score
    return qrels, run


def each(arrays: Arrays) -> list[tuple[Floats, Floats]]:
    """The labels and scores of each query."""
    labels, scores, group = arrays
    ends = np.cumsum(group)[:-1]
    return list(zip(np.split(labels, ends), np.split(scores, ends), strict=True))


def expected(path: Path) -> dict[str, dict[str, float]]:
    """trec_eval's output: a measure, a topic and a value on each line."""
    values: dict[str, dict[str, float]] = {}
    for line in path.read_text().splitlines():
        name, topic, value = line.split()
        if name not in ("runid", "relstring"):
            values.setdefault(topic, {})[name] = float(value)
    return values
