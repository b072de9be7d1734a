"""Lines of Python that train a ranker from an exported file, for those who work in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from podium.studio.jobs.queue import State
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow, ProjectRow
from podium.studio.transfer.exports import ExportOptions, download_name

_READABLE = frozenset({"csv", "qrels", "qrels-parquet", "jsonl"})
"""Formats that `podium.data.as_judgments` reads as labels."""
_ENOUGH_FOR_TREES = 50
"""With fewer queries, a linear ranker: trees need many documents in each leaf."""


def newest_labels(exports: Sequence[JobRow]) -> JobRow | None:
    """The newest of some exports, newest first, that wrote a file of labels by ID; or None.

    Files whose IDs were changed do not fit to a file of features.
    """
    for job in exports:
        options = ExportOptions(**job.parameters)
        if (
            job.state == State.DONE
            and job.file is not None
            and options.content in ("labels", "grades")
            and options.format in _READABLE
            and not options.underscores
        ):
            return job
    return None


def training_lines(project: ProjectRow, export: JobRow) -> str:
    """Lines that train a ranker from a file of labels and one of features.

    Args:
        project: The project.
        export: The export that wrote the labels.
    """
    file = download_name(project, export)
    trees = export.result.get("queries", 0) >= _ENOUGH_FOR_TREES
    ranker, extra = ("TreeRanker", "trees") if trees else ("LinearRanker", "rankers")
    loss, measure = "", "nDCG@10"
    if project.mode == Mode.PAIRS:
        loss, measure = f'"ListMLE(k={project.k})"', f"kNDCG(k={project.k})@{project.k}"
    return f"""\
# %pip install "podium-rank[{extra}]"
from podium import {ranker}, evaluate
from podium.data import as_judgments, read_csv

# features.csv is your own: query_id, document_id, and a column for each feature.
features = read_csv("features.csv", unlabeled=True)
data = features.relabel(as_judgments("{file}"))
train, validation = data.split(0.8, 0.2, seed=1)
ranker = {ranker}({loss}).fit(train, eval_set=validation)
print(evaluate("{measure}", validation, ranker.predict(validation)))
ranker.save("ranker.podium")
"""
