"""The hash of definitions, from data to what ranks: refused wherever two differ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium.data import (
    Dataset,
    ShardSet,
    concat_datasets,
    read_parquet,
    write_parquet,
    write_shards,
)
from podium.data.conversion import convert
from podium.data.formats.parquet import iter_parquet
from podium.errors import ArgumentError, DataError
from podium.export import export_ranker
from podium.export.folder import ExportFolder
from podium.export.writing import ExportSettings
from podium.features import read_definitions
from podium.monitoring import read_ranking_log
from podium.rankers import CascadeRanker, LinearRanker, TreeRanker, load_ranker
from podium.serving import ServingSettings
from podium.serving.repository import Repository
from podium.serving.settings import ModelSpec
from tests.cli.run_podium import fail, podium, succeed
from tests.serving.service import serving

ONE, OTHER = "1" * 64, "2" * 64
TEXT = "".join(
    f'[[feature]]\nname = "{name}"\nsource = "field"\nfield = "{name}"\n' for name in "ab"
)


def data(definitions: str | None = ONE, queries: range = range(8)) -> Dataset:
    random = np.random.default_rng(queries.start)
    X = random.random((10 * len(queries), 2)).astype(np.float32)
    rows = Dataset.from_arrays(
        X, np.round(3 * X[:, 0]), group=[10] * len(queries),
        query_ids=[f"q{number}" for number in queries], feature_names=["a", "b"],
    )  # fmt: skip
    return replace(rows, definitions_hash=definitions)


def both(error: pytest.ExceptionInfo[DataError] | str) -> bool:
    text = error if isinstance(error, str) else str(error.value)
    return ONE[:12] in text and OTHER[:12] in text


def test_parquet_files_and_shards_keep_the_hash(tmp_path: Path):
    path = tmp_path / "data.parquet"
    write_parquet(data(), path)
    assert pq.read_schema(path).metadata[b"podium.definitions"] == ONE.encode()
    assert read_parquet(path, Dataset).definitions_hash == ONE
    assert [block.definitions_hash for block in iter_parquet(path)] == [ONE, ONE]
    convert(path, tmp_path / "shards")
    shards = ShardSet.open(tmp_path / "shards")
    assert (shards.definitions_hash, shards.load().definitions_hash) == (ONE, ONE)
    convert(tmp_path / "shards", tmp_path / "again.parquet")
    assert read_parquet(tmp_path / "again.parquet", Dataset).definitions_hash == ONE


def test_files_without_a_hash_are_as_before(tmp_path: Path):
    path = tmp_path / "data.parquet"
    write_parquet(data(None), path)
    assert pq.read_schema(path).metadata is None
    assert read_parquet(path, Dataset).definitions_hash is None
    write_shards(data(None), tmp_path / "shards")
    assert "definitions_hash" not in json.loads((tmp_path / "shards/manifest.json").read_text())
    assert ShardSet.open(tmp_path / "shards").definitions_hash is None


def test_a_malformed_hash_in_a_file_is_refused(tmp_path: Path):
    table = pa.table({"query_id": ["q"], "label": [1.0], "a": [1.0]})
    path = tmp_path / "data.parquet"
    pq.write_table(table.replace_schema_metadata({"podium.definitions": "x" * 64}), path)
    with pytest.raises(DataError, match="malformed hash of feature definitions"):
        read_parquet(path, Dataset)


def test_selections_keep_the_hash_and_other_values_do_not():
    rows = data()
    assert rows.select(["q3"]).definitions_hash == ONE
    assert rows.select_features(["b"]).definitions_hash == ONE
    assert rows.top_k(3).definitions_hash == ONE
    assert rows.split(0.5, 0.5)[1].definitions_hash == ONE
    assert rows.normalize().definitions_hash is None


def test_data_of_different_definitions_are_not_joined(tmp_path: Path):
    more = data(OTHER, range(8, 10))
    with pytest.raises(DataError, match="the data sets follow different") as error:
        concat_datasets([data(), more])
    assert both(error)
    with pytest.raises(DataError, match="the blocks follow different"):
        write_shards([data(), more], tmp_path / "shards")
    with pytest.raises(DataError, match="the blocks follow different"):
        write_parquet([data(), more], tmp_path / "data.parquet")
    assert concat_datasets([data(), replace(more, definitions_hash=ONE)]).definitions_hash == ONE
    assert concat_datasets([data(), replace(more, definitions_hash=None)]).definitions_hash is None


@pytest.mark.parametrize(
    "ranker",
    [
        LinearRanker("ListNet()"),
        TreeRanker(n_estimators=3),
        CascadeRanker(LinearRanker(), [LinearRanker("ListNet()")], candidates=5),
    ],
)
def test_a_ranker_keeps_the_hash_and_refuses_other_data(tmp_path: Path, ranker):
    ranker.fit(data()).save(tmp_path / "ranker.podium")
    loaded = load_ranker(tmp_path / "ranker.podium")
    assert loaded.definitions_hash_ == ONE
    for same in (data(ONE), data(None)):
        np.testing.assert_array_equal(loaded.predict(same), ranker.predict(same))
    with pytest.raises(
        DataError, match=r"features of the data .* are not those of the ranker"
    ) as e:
        loaded.predict(data(OTHER))
    assert both(e)


def test_rankers_of_data_without_a_hash_take_all_data():
    ranker = LinearRanker("ListNet()").fit(data(None))
    assert b"definitions" not in ranker.to_bytes()
    assert ranker.definitions_hash_ is None
    np.testing.assert_array_equal(ranker.predict(data(ONE)), ranker.predict(data(None)))
    arrays = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
    assert arrays.definitions_hash_ is None


def test_a_shard_set_gives_its_ranker_the_hash(tmp_path: Path):
    assert (
        LinearRanker("ListNet()").fit(write_shards(data(), tmp_path / "s")).definitions_hash_ == ONE
    )


def test_validation_data_of_other_definitions_are_refused():
    with pytest.raises(DataError, match="the validation data") as error:
        LinearRanker("ListNet()").fit(data(), eval_set=data(OTHER, range(8, 12)))
    assert both(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Definitions, another file of them, data and a trained ranker."""
    path = tmp_path_factory.mktemp("hash")
    (path / "features.toml").write_text(TEXT)
    (path / "other.toml").write_text(TEXT + "missing = 3\n")
    known = read_definitions(path / "features.toml").hash
    other = read_definitions(path / "other.toml").hash
    write_parquet(data(known), path / "train.parquet")
    write_parquet(data(other), path / "other.parquet")
    done = podium(
        "train", path / "train.parquet", path / "ranker.podium", "--set", "n_estimators=5"
    )
    assert done.returncode == 0, done.stderr
    return path


def hashes(folder: Path) -> tuple[str, str]:
    files = (folder / name for name in ("features.toml", "other.toml"))
    first, second = (read_definitions(file).hash[:12] for file in files)
    return first, second


def test_predict_refuses_data_of_other_definitions(folder: Path):
    succeed("predict", folder / "ranker.podium", folder / "train.parquet")
    message = fail("predict", folder / "ranker.podium", folder / "other.parquet")
    first, second = hashes(folder)
    assert message == (
        f"the features of the data (definitions {second}) are not those of the ranker "
        f"(definitions {first}). Log the features again by the definitions of the ranker, or train "
        "a ranker on the new ones."
    )


def test_export_writes_the_hash_and_computes_features_by_definitions(folder: Path):
    ranker, output = folder / "ranker.podium", folder / "shop"
    definitions = folder / "features.toml"
    done = podium(
        "export", ranker, "--to", "opensearch", "-o", output, "--definitions", definitions
    )
    assert done.returncode == 0, done.stderr
    defined = read_definitions(definitions)
    export = ExportFolder.open(output)
    assert export.manifest.definitions == defined.hash
    listed = export.read_json("featureset.json")["featureset"]["features"]
    assert listed == defined.to_opensearch()["featureset"]["features"]
    assert "0 of" in succeed("verify", output, "--definitions", definitions)
    first, second = hashes(folder)
    other = folder / "other.toml"
    for message in (
        fail("verify", output, "--definitions", other),
        fail("export", ranker, "--to", "opensearch", "-o", folder / "no", "--definitions", other),
    ):
        assert first in message
        assert second in message
    assert not (folder / "no").exists()


def test_export_refuses_definitions_without_a_feature_of_the_ranker(tmp_path: Path):
    ranker = tmp_path / "old.podium"
    LinearRanker("ListNet()").fit(data(None)).save(ranker)
    (tmp_path / "fewer.toml").write_text(TEXT.partition('[[feature]]\nname = "b"')[0])
    message = fail("export", ranker, "--to", "solr", "--definitions", tmp_path / "fewer.toml")
    assert f"feature 'b' of {ranker} is not defined" in message


def test_exports_without_a_hash_are_as_before(tmp_path: Path):
    ranker = LinearRanker("ListNet()").fit(data(None))
    export = export_ranker(ranker, "opensearch", tmp_path / "shop")
    assert "definitions" not in json.loads((tmp_path / "shop/manifest.json").read_text())
    assert export.manifest.definitions is None


@pytest.mark.parametrize("target", ["opensearch", "o19s", "solr", "elasticsearch", "vespa"])
def test_a_ranker_with_definitions_is_not_exported_as_if_its_features_were_fields(
    tmp_path: Path, target: str
):
    """Engines would read fields that documents may not have."""
    ranker = TreeRanker(n_estimators=2).fit(data())
    with pytest.raises(ArgumentError, match=rf"follow definitions \({ONE[:12]}\), and .*--fields"):
        export_ranker(ranker, target, tmp_path / "export")
    assert not (tmp_path / "export").exists()
    export = export_ranker(ranker, target, tmp_path / "export", ExportSettings(fields=True))
    assert export.manifest.definitions == ONE


def test_an_engine_that_is_given_features_takes_a_ranker_with_definitions(tmp_path: Path):
    ranker = LinearRanker("ListNet()").fit(data())
    assert export_ranker(ranker, "onnx", tmp_path).manifest.definitions == ONE


def test_the_command_exports_a_ranker_with_definitions_if_its_features_are_fields(folder: Path):
    ranker, output = folder / "ranker.podium", folder / "fields"
    message = fail("export", ranker, "--to", "solr", "-o", output)
    assert "(--definitions, --extractors)" in message
    assert "(--fields)" in message
    assert not output.exists()
    done = podium("export", ranker, "--to", "solr", "-o", output, "--fields")
    assert done.returncode == 0, done.stderr
    assert ExportFolder.open(output).read_json("features.json")[0]["params"]["field"] == "a"
    both_given = ("--fields", "--definitions", folder / "features.toml")
    assert "both say how features are" in fail("export", ranker, "--to", "solr", *both_given)


def test_an_exports_feature_set_is_that_of_its_definitions(folder: Path):
    """So what a model uses is what a log and a service use."""
    defined = read_definitions(folder / "features.toml")
    for target, file in (("opensearch", "featureset.json"), ("solr", "features.json")):
        output = folder / f"named.{target}"
        settings = ExportSettings(extractors=defined.extractors(target))
        export_ranker(folder / "ranker.podium", target, output, settings)
        content = ExportFolder.open(output).read_json(file)
        if target == "solr":
            assert {each["store"] for each in content} == {defined.to_solr()[0]["store"]}
        else:
            assert content["featureset"]["name"] == defined.to_opensearch()["featureset"]["name"]


def test_a_malformed_hash_in_a_manifest_is_refused(tmp_path: Path):
    settings = ExportSettings(fields=True)
    export_ranker(LinearRanker("ListNet()").fit(data()), "opensearch", tmp_path, settings)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace(ONE, "1" * 63))
    with pytest.raises(DataError, match="malformed hash"):
        ExportFolder.open(tmp_path)


def test_a_service_refuses_requests_by_other_definitions(folder: Path, tmp_path: Path):
    known = read_definitions(folder / "features.toml").hash
    document = {"id": "d", "features": {"a": 0.5, "b": 0.5}}
    models = (ModelSpec("web", 1, str(folder / "ranker.podium")),)
    with serving(ServingSettings(models=models, ranking_log=str(tmp_path))) as url:
        metadata = httpx2.get(f"{url}/v2/models/web", timeout=60).json()
        assert metadata["parameters"]["definitions"] == known
        for definitions, status in ((known, 200), (None, 200), (OTHER, 400), ("x", 400)):
            body = {"documents": [document], "definitions": definitions}
            answer = httpx2.post(f"{url}/rank", json=body, timeout=60)
            assert answer.status_code == status
            if definitions == OTHER:
                assert known[:12] in answer.json()["error"]
                assert OTHER[:12] in answer.json()["error"]
    rankings = read_ranking_log(tmp_path)
    assert (len(rankings.queries), rankings.dataset().definitions_hash) == (2, known)


def ranking_line(definitions: str | None) -> str:
    content = {"query": "q", "ids": ["d"], "scores": [0.5], "features": {"a": [2]}}
    return json.dumps(content | ({"definitions": definitions} if definitions else {})) + "\n"


def test_a_ranking_log_passes_the_hash_on(tmp_path: Path):
    log, output = tmp_path / "rankings-1.jsonl", tmp_path / "data.parquet"
    log.write_text(ranking_line(ONE) * 2)
    assert podium("features", "from-log", log, output).returncode == 0
    assert read_parquet(output, Dataset).definitions_hash == ONE
    log.write_text(ranking_line(ONE) + ranking_line(None))
    assert read_ranking_log(log).definitions_hash is None
    log.write_text(ranking_line(ONE) + ranking_line(OTHER))
    assert both(fail("features", "from-log", log, output))
    log.write_text(ranking_line("x"))
    assert "rankings-1.jsonl, line 1: has a malformed hash" in fail(
        "features", "from-log", log, output
    )


def test_a_shadow_of_other_definitions_is_refused(folder: Path, tmp_path: Path):
    TreeRanker(n_estimators=2).fit(data(OTHER)).save(tmp_path / "shadow.podium")
    served = ModelSpec("web", 1, str(folder / "ranker.podium"))
    other = ModelSpec("web", 1, str(tmp_path / "shadow.podium"))
    refused = ServingSettings(models=(served,), shadows=(other,))
    with pytest.raises(DataError, match=r"the features of its shadow (.*) are not those of web"):
        Repository(refused, tmp_path).reload()
    accepted = ServingSettings(models=(served,), shadows=(served,))
    assert len(Repository(accepted, tmp_path).reload().models) == 2
