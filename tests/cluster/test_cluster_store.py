"""Shards, values, checkpoints and tables in an object store that speaks S3's language."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyarrow import fs

from podium.cluster import Cluster, evaluate_shards, fit_shards, sweep
from podium.cluster.shard_values import ShardedEvaluation
from podium.cluster.sources import open_source
from podium.errors import DataError
from podium.rankers import LinearRanker, TreeRanker
from tests.cluster.object_store import SECRET, ObjectStore
from tests.cluster.shards import MEASURES, assert_equal, cut, scored
from tests.cluster.tasks import TASKS, measured
from tests.rankers.made_up import made_up

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    object_store = ObjectStore(tmp_path_factory.mktemp("store"))
    yield object_store
    object_store.kill()


def test_evaluations_read_and_write_there(
    store: ObjectStore, three: Cluster, tmp_path: Path
) -> None:
    data = scored(50)
    cut(data, tmp_path / "scored", 6)
    url = store.upload(tmp_path / "scored", "scored")
    values = store.url("values")
    columns = list(data.feature_names)
    evaluation = evaluate_shards(MEASURES, url, score=columns, output=values, cluster=three)
    assert_equal(evaluation, data)
    assert_equal(ShardedEvaluation.open(values), data)
    assert_equal(evaluate_shards(MEASURES, url, score=columns), data)  # in this process too
    opened = open_source(url)
    for shard in range(len(opened.shards)):
        opened.verify(shard)


@pytest.mark.long
def test_fits_read_there_and_keep_checkpoints_there(
    store: ObjectStore, three: Cluster, tmp_path: Path
) -> None:
    data = made_up(30)
    cut(data, tmp_path / "train", 3)
    url = store.upload(tmp_path / "train", "train")
    one = LinearRanker("ListNet()").fit(data)
    checkpoints = store.url("checkpoints")
    many = fit_shards(LinearRanker("ListNet()"), url, checkpoints=checkpoints, cluster=three)
    np.testing.assert_allclose(many.coef_, one.coef_, rtol=1e-6, atol=1e-6)
    again = fit_shards(LinearRanker("ListNet()"), url, checkpoints=checkpoints, cluster=three)
    assert again.n_iter_ < many.n_iter_


@pytest.mark.long
def test_trees_keep_checkpoints_there(store: ObjectStore, three: Cluster, tmp_path: Path) -> None:
    cut(made_up(30), tmp_path / "train", 3)
    url = store.upload(tmp_path / "train", "for-trees")
    trees = TreeRanker("ListNet()", n_estimators=5, early_stopping_rounds=None)
    fit_shards(trees, url, checkpoints=store.url("forest"), checkpoint_seconds=0.0, cluster=three)
    assert trees.n_estimators_ == 5
    files, path = fs.FileSystem.from_uri(store.url("forest"))
    kept = files.get_file_info(fs.FileSelector(path, recursive=True))
    assert any(info.base_name == "state" and info.size > 0 for info in kept)


def test_a_sweep_goes_on_from_a_table_there(store: ObjectStore) -> None:
    table = store.url("sweep/results.parquet")
    sweep(measured, TASKS[:5], results=table)
    ran: list[int] = []
    sweep(measured, TASKS, results=table, progress=lambda state: ran.append(state.done))
    assert ran[0] == 5
    assert ran[-1] == len(TASKS)


def test_what_is_wrong_is_said_and_no_secret_with_it(
    store: ObjectStore, three: Cluster, tmp_path: Path
) -> None:
    data = scored(40)
    source = cut(data, tmp_path / "scored", 4)
    url = store.upload(tmp_path / "scored", "damaged")
    files, path = fs.FileSystem.from_uri(url)
    with pytest.raises(DataError, match="no manifest") as raised:
        open_source(store.url("nowhere"))
    assert SECRET not in str(raised.value)
    with pytest.raises(DataError, match="cannot be read") as raised:
        open_source(store.url("damaged", secret="wrong"))
    assert "wrong" not in str(raised.value)
    files.delete_file(f"{path}/{source.shards[1].file}")
    with pytest.raises(DataError, match="missing") as raised:
        evaluate_shards("RR", url, score="bm25", cluster=three)
    assert SECRET not in str(raised.value)


@pytest.mark.long
def test_a_store_that_dies_is_said(three: Cluster, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    store = ObjectStore(tmp_path / "own")
    cut(scored(40), tmp_path / "scored", 4)
    url = store.upload(tmp_path / "scored", "scored")
    opened = open_source(url)
    store.kill()
    with pytest.raises(DataError, match="cannot be read") as raised:
        evaluate_shards("RR", opened, score="bm25", cluster=three)
    assert SECRET not in str(raised.value)
