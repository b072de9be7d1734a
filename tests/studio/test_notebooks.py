"""The page of exports has lines for a notebook that read the newest file of labels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from podium.studio.store.rows import JobRow, ProjectRow
from podium.studio.transfer.exports import ExportOptions, newest_labels, training_lines


def job(number, state="done", file="x.csv", queries=100, **options):
    parameters = ExportOptions(**{"format": "csv", **options}).model_dump()
    result = {"queries": queries}
    return JobRow(number, 1, 1, "export", parameters, state, 1.0, file, None, 0, 0, None, 1, result)


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
    assert newest_labels(exports).id == 7
    assert newest_labels(exports[:1]) is None


@pytest.mark.parametrize(
    ("mode", "queries", "ranker"),
    [
        ("pairs", 50, 'TreeRanker("ListMLE(k=4)")'),
        ("pairs", 49, 'LinearRanker("ListMLE(k=4)")'),
        ("grades", 50, "TreeRanker()"),
    ],
)
def test_the_ranker_fits_the_labels(mode, queries, ranker):
    project = SimpleNamespace(name="Autumn shop", mode=mode, k=4)
    lines = training_lines(cast(ProjectRow, project), job(7, queries=queries)).splitlines()
    assert f"ranker = {ranker}.fit(train, eval_set=validation)" in lines
    assert 'data = features.relabel(as_judgments("autumn-shop-labels-7.csv"))' in lines
    name = ranker.partition("(")[0]
    extra = {"TreeRanker": "trees", "LinearRanker": "rankers"}[name]
    assert lines[:2] == [
        f'# %pip install "podium-rank[{extra}]"',
        f"from podium import {name}, evaluate",
    ]
