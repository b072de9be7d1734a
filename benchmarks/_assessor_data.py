"""TREC's Deep Learning track of 2021 as questions to a model: judged passages with their texts."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from podium.data import Judgments, Rankings, read_qrels, read_run

DATA = Path(__file__).parents[2] / "shared" / "data"
KEPT = Path(__file__).parents[1] / "build" / "assessors"
"""Where answers of real models are kept; not committed."""


@dataclass(frozen=True)
class JudgedPassages:
    """Queries, texts, people's grades, and runs."""

    queries: dict[str, str]
    texts: dict[str, str]
    grades: dict[str, dict[str, int]]
    judgments: Judgments

    def runs(self) -> dict[str, Rankings]:
        """Every run of the folder, by its file's name."""
        paths = sorted((DATA / "trec/dl21-runs").glob("*.run.gz"))
        return {path.name.removesuffix(".run.gz"): read_run(path) for path in paths}


@cache
def judged_passages() -> JudgedPassages:
    """Read the data set; FileNotFoundError where it is not there."""
    judgments = read_qrels(DATA / "trec/qrels.dl21-passage.txt.gz")
    queries = np.repeat(judgments.query_ids.to_pylist(), np.diff(judgments.offsets))
    grades: dict[str, dict[str, int]] = {}
    documents = judgments.document_ids.to_pylist()
    for query, document, label in zip(queries, documents, judgments.labels, strict=True):
        grades.setdefault(str(query), {})[document] = int(label)
    texts = _pairs(DATA / "preferences/trec-dl21/passages.txt.gz")
    topics = _pairs(DATA / "trec/topics.dl21.tsv.gz")
    return JudgedPassages({query: topics[query] for query in grades}, texts, grades, judgments)


def _pairs(path: Path) -> dict[str, str]:
    """Read lines of an id, a tab and a text."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = (line.rstrip("\n").partition("\t") for line in stream)
        return {key: text for key, _, text in rows}
