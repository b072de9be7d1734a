"""The page of exports has lines for a notebook that read the newest file of labels."""

from __future__ import annotations

import pytest

from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow
from podium.studio.transfer.exports import ExportOptions
from podium.studio.transfer.notebooks import labels_file, training_lines


class Project:
    name = "Autumn shop"


def job(number, state="done", file="x.csv", **options):
    parameters = ExportOptions(**{"format": "csv", **options}).model_dump()
    return JobRow(number, 1, 1, "export", parameters, state, 1.0, file, None, 0, 0, None, 1, {})


@pytest.mark.parametrize(
    "newer",
    [
        {"content": "log"},
        {"content": "preferences", "format": "pairs"},
        {"format": "prefs"},
        {"format": "qrels", "underscores": True},
        {"state": "failed"},
        {"state": "running", "file": None},
        {"file": None},  # it has expired
    ],
)
def test_the_newest_file_that_has_labels_by_id(newer):
    exports = [job(9, **newer), job(7), job(5, format="qrels", file="x.qrels")]
    assert labels_file(Project, exports) == "autumn-shop-labels-7.csv"
    assert labels_file(Project, exports[:1]) is None


def test_grades_are_trained_as_grades():
    lines = training_lines("shop-grades-3.csv", Mode.GRADES, 10)
    assert "ranker = TreeRanker().fit(train, eval_set=validation)" in lines
    assert 'evaluate("nDCG@10", validation' in lines
    assert 'as_judgments("shop-grades-3.csv")' in lines
