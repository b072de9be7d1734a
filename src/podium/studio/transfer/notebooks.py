"""Lines of Python that train a ranker from an exported file, for those who work in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from podium.studio.jobs.queue import State
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow, ProjectRow
from podium.studio.transfer.exports import ExportOptions, download_name

_READABLE = frozenset({"csv", "qrels", "qrels-parquet", "jsonl"})
"""Formats that `podium.data.as_judgments` reads as labels."""


def labels_file(project: ProjectRow, exports: Sequence[JobRow]) -> str | None:
    """The newest file of labels as it is called when it is downloaded, or None.

    Files whose IDs were changed do not fit to a file of features.

    Args:
        project: The project.
        exports: Its exports, newest first.
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
            return download_name(project, job)
    return None


def training_lines(file: str, mode: Mode, k: int) -> str:
    """Lines that train a ranker from a file of labels and one of features.

    Example:
        >>> print(training_lines("shop-labels-7.csv", Mode.PAIRS, 10).splitlines()[-3])
        ranker = TreeRanker("ListMLE(k=10)").fit(train, eval_set=validation)
    """
    loss, measure = "", "nDCG@10"
    if mode is Mode.PAIRS:
        loss, measure = f'"ListMLE(k={k})"', f"kNDCG(k={k})@{k}"
    return f"""\
# %pip install "podium[trees]"
from podium import TreeRanker, evaluate
from podium.data import as_judgments, read_csv

# features.csv is your own: query_id, document_id, and a column for each feature.
features = read_csv("features.csv", unlabelled=True)
data = features.relabel(as_judgments("{file}"))
train, validation = data.split(0.8, 0.2, seed=1)
ranker = TreeRanker({loss}).fit(train, eval_set=validation)
print(evaluate("{measure}", validation, ranker.predict(validation)))
ranker.save("ranker.podium")
"""
