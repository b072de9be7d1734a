"""Evaluations over shards: the same numbers as in one process, for any sharding."""

import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._raylets import Raylets
from podium.cluster import Cluster, evaluate_shards
from podium.cluster.shard_values import ShardedEvaluation
from podium.cluster.sources import open_source
from podium.errors import ArgumentError, DataError
from podium.measures import Conventions
from podium.measures import evaluate as evaluate_rows
from podium.rankers import LinearRanker
from tests.cluster.shards import MEASURES, assert_equal, cut, scored

pytestmark = pytest.mark.slow


@settings(max_examples=1 if os.environ.get("CI") else 5)
@given(
    queries=st.integers(1, 60),
    shards=st.integers(1, 12),
    workers=st.sampled_from([2, 3, 5]),
    conventions=st.sampled_from(["podium", "letor4"]),
    seed=st.integers(0, 2**16),
)
def test_any_sharding_and_any_workers_give_the_numbers_of_one_process(
    raylets: Raylets, queries: int, shards: int, workers: int, conventions: str, seed: int
) -> None:
    data = scored(queries, seed)
    cluster = Cluster(raylets.address, workers=workers)
    with TemporaryDirectory() as folder:
        source = cut(data, f"{folder}/scored", shards)
        columns = list(data.feature_names)
        for where in (None, cluster):
            evaluation = evaluate_shards(
                MEASURES, source, score=columns, conventions=conventions, cluster=where
            )
            assert_equal(evaluation, data, conventions)


@pytest.mark.long
def test_values_are_written_back_as_shards(three: Cluster, tmp_path: Path) -> None:
    data = scored(50)
    source = cut(data, tmp_path / "scored", 6)
    reports: list[tuple[int, int | None]] = []
    evaluation = evaluate_shards(
        MEASURES,
        f"file://{tmp_path}/scored",
        score=list(data.feature_names),
        output=tmp_path / "values",
        progress=lambda done, total: reports.append((done, total)),
        cluster=three,
    )
    assert_equal(evaluation, data)
    assert_equal(ShardedEvaluation.open(tmp_path / "values"), data)
    parts = sorted(path.name for path in (tmp_path / "values").glob("*.parquet"))
    assert parts == [shard.file for shard in source.shards]
    total = sum(shard.bytes for shard in source.shards)
    assert reports[-1] == (total, total)
    assert len(reports) == len(source.shards)
    with pytest.raises(DataError, match="another evaluation"):
        evaluate_shards(MEASURES, source, score="bm25", output=tmp_path / "values", cluster=three)


@pytest.mark.long
def test_rankers_are_runs_beside_columns(three: Cluster, tmp_path: Path) -> None:
    data = scored(40)
    source = cut(data, tmp_path / "scored", 4)
    ranker = LinearRanker("ListNet()").fit(data)
    evaluation = evaluate_shards(
        "nDCG@5", source, score={"first": "bm25", "learned": ranker}, cluster=three
    )
    whole = evaluate_rows("nDCG@5", data, ranker.predict(data))
    np.testing.assert_allclose(evaluation["learned"]["nDCG@5"], whole["nDCG@5"], atol=1e-9)
    assert evaluation["first"].means != evaluation["learned"].means
    negative = Conventions(negative="irrelevant")
    clicked: dict[str, Any] = {"label": "clicks", "conventions": negative, "cluster": three}
    by_clicks = evaluate_shards("RR", source, score="bm25", **clicked)
    beside = evaluate_shards("RR", source, score={"bm25": "bm25", "learned": ranker}, **clicked)
    assert beside["bm25"].means == by_clicks["bm25"].means
    with pytest.raises(DataError, match="no column 'clicked'"):
        evaluate_shards("RR", source, score={"r": ranker}, label="clicked", cluster=three)
    with pytest.raises(ArgumentError, match="not in 'session'"):
        evaluate_shards("RR", source, score={"r": ranker}, query="session")


def test_what_is_wrong_is_said(three: Cluster, tmp_path: Path) -> None:
    data = scored(40)
    source = cut(data, tmp_path / "scored", 4)
    with pytest.raises(DataError, match="not have exactly one column 'bm52'"):
        evaluate_shards("RR", source, score="bm52", cluster=three)
    with pytest.raises(ArgumentError, match="no runs"):
        evaluate_shards("RR", source, score=[], cluster=three)
    with pytest.raises(DataError, match="no manifest"):
        open_source(f"file://{tmp_path}")
    with pytest.raises(DataError, match="cannot be opened"):
        open_source("gopher://example.org/shards")
    opened = open_source(source)
    opened.verify(0)
    part = tmp_path / "scored" / source.shards[1].file
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(DataError, match="checksum"):
        opened.verify(1)
    part.write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"bytes, .* in the manifest"):
        evaluate_shards("RR", source, score="bm25", cluster=three)
    part.unlink()
    with pytest.raises(DataError, match="missing"):
        evaluate_shards("RR", source, score="bm25", cluster=three)


@pytest.mark.long
def test_a_killed_raylet_changes_nothing(
    raylets: Raylets, three: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = scored(3000, most=60)
    source = cut(data, tmp_path / "scored", 60)
    reports: list[int] = []

    def kill_midway(done: int, _total: int | None) -> None:
        reports.append(done)
        if len(reports) == 10:
            raylets.kill_one(random.Random(1))

    evaluation = evaluate_shards(
        MEASURES, source, score=list(data.feature_names), progress=kill_midway, cluster=three
    )
    assert len(reports) == len(source.shards) > 10
    assert_equal(evaluation, data)
    raylets.replace_killed()  # by now Ray knows of the loss
    assert capsys.readouterr().out == ""  # where a command prints its results


def test_it_is_a_mapping_and_has_the_means_of_its_evaluations(tmp_path: Path) -> None:
    data = scored(40, most=9)
    source = cut(data, tmp_path / "scored", 3)
    name = data.feature_names[0]
    result = evaluate_shards(["GMAP", "NumRet", "RR"], source, score=[name])
    assert name in result
    assert "other" not in result
    assert result.get("other") is None
    assert result.means[name] == result[name].means
    with pytest.raises(KeyError, match="was not evaluated"):
        result["other"]
