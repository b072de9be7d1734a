"""``podium export`` and ``podium verify``."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from podium.data import write_letor
from podium.export.folder import ExportFolder
from podium.measures import evaluate
from podium.rankers import TreeRanker, load_ranker
from tests.cli.run_podium import fail, podium
from tests.export.trained import lightgbm_model, queries


def run(*arguments: object) -> tuple[str, str]:
    """Run a command that succeeds, and return what it printed, and to the standard error."""
    done = podium(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(), done.stderr.decode()


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export")
    TreeRanker(n_estimators=5).fit(queries()).save(path / "ranker.podium")
    TreeRanker(n_estimators=5).fit(queries(missing=False)).save(path / "plain.podium")
    held = queries(missing=False)
    write_letor(held, path / "held.txt")
    rows = re.sub(r" qid:\S+", "", (path / "held.txt").read_text())
    (path / "rows.txt").write_text(rows)
    (path / "sizes").write_text("".join(f"{size}\n" for size in np.diff(held.offsets)))
    (path / "lightgbm.txt").write_text(lightgbm_model().model_to_string())
    return path


@pytest.mark.parametrize("target", ["onnx", "opensearch", "o19s", "solr", "elasticsearch", "vespa"])
def test_export_and_verify(target: str) -> None:
    _, notes = run("export", "ranker.podium", "--to", target)
    export = ExportFolder.open(f"ranker.podium.{target}")
    golden = export.manifest.golden
    assert (
        f"Wrote ranker.podium.{target} for {target}, checked with {golden['rows']} golden rows, "
        f"which reach {golden['leaves']} of {golden['leaves']} leaves."
    ) in notes
    printed, _ = run("verify", f"ranker.podium.{target}")
    assert f"0 of {golden['rows']} golden rows off" in printed


def test_a_difference_is_printed_and_ends_with_status_1() -> None:
    run("export", "ranker.podium", "--to", "solr", "-o", "changed")
    model = json.loads(Path("changed/model.json").read_text())
    del model["params"]["trees"][2]
    Path("changed/model.json").write_text(json.dumps(model))
    done = podium("verify", "changed")
    assert done.returncode == 1
    text = done.stdout.decode()
    assert "model.json is not as it was written" in text
    assert "tree 2: 1 tree is missing from here on" in text


def test_a_changed_file_alone_ends_with_status_1() -> None:
    run("export", "ranker.podium", "--to", "vespa", "-o", "renamed")
    profile = Path("renamed/rank-profile.sd")
    profile.write_text(profile.read_text().replace("attribute(f1)", "attribute(f2)"))
    done = podium("verify", "renamed")
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert ": 0 of " in lines[0]
    assert lines[1:] == [
        "  rank-profile.sd is not as it was written",
        "  feature f1 is read from the field of f2",
        "  not checked: a running engine: no URL was given",
    ]
    done = podium("verify", "renamed", "--json")
    content = json.loads(done.stdout)
    assert (done.returncode, content["holds"], content["off"]) == (1, False, [])
    assert content["unchecked"] == ["a running engine: no URL was given"]


def test_queries_are_compared_with_an_engine_and_definitions() -> None:
    run("export", "ranker.podium", "--to", "vespa", "-o", "queried")
    done = podium("verify", "queried", "--queries", "q.tsv")
    assert done.returncode == 2
    assert "--queries needs URL and --definitions" in " ".join(done.stderr.decode().split())


def test_the_manifest_has_the_measure_on_validation_data() -> None:
    run(
        "export", "plain.podium", "--to", "onnx", "-o", "measured", "--validation", "held.txt",
        "--measure", "nDCG@5",
    )  # fmt: skip
    data = queries(missing=False)
    scores = load_ranker("plain.podium").predict(data)
    expected = evaluate("nDCG@5", data, scores).means["nDCG@5"]
    assert ExportFolder.open("measured").manifest.measure == {"nDCG@5": pytest.approx(expected)}
    # Ordinary values of golden rows are those of the data.
    golden = ExportFolder.open("measured").golden_rows()
    assert (data.features == golden.values[0].astype(np.float32)).all(axis=1).any()


def test_extractors_are_read_from_a_file() -> None:
    Path("extractors.json").write_text('{"1": {"match": {"title": "{{q}}"}}}')
    run(
        "export", "ranker.podium", "--to", "elasticsearch", "-o", "es", "--extractors",
        "extractors.json",
    )  # fmt: skip
    model = ExportFolder.open("es").read_json("model.json")
    extractors = model["inference_config"]["learning_to_rank"]["feature_extractors"]
    assert extractors[0]["query_extractor"]["query"] == {"match": {"title": "{{q}}"}}


@pytest.mark.parametrize(
    ("source", "name", "command"),
    [
        ("ranker.podium", "model.onnx", "export kept/model.onnx --to onnx"),
        ("ranker.podium", "golden.jsonl", "export kept/golden.jsonl --to solr"),
        ("extractors.json", "features.json",
         "export ranker.podium --to solr --extractors kept/features.json"),
        ("held.txt", "golden.jsonl",
         "export plain.podium --to solr --validation kept/golden.jsonl --format letor"),
        ("sizes", "golden.jsonl",
         "export plain.podium --to solr --validation rows.txt --group kept/golden.jsonl"),
    ],
)  # fmt: skip
def test_no_input_is_written_over(source: str, name: str, command: str, tmp_path: Path) -> None:
    Path("extractors.json").write_text("{}")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / name).write_bytes(Path(source).read_bytes())
    words = [word.replace("kept/", f"{kept}/") for word in command.split()]
    message = fail(*words, "-o", kept)
    assert f"{kept / name} is one of the files to read. Name another folder." in message
    assert [path.name for path in kept.iterdir()] == [name]
    assert (kept / name).read_bytes() == Path(source).read_bytes()
    # Beside files of an export, nothing is lost.
    (kept / name).rename(kept / "input")
    run(*[word.replace(name, "input") for word in words], "-o", kept)
    assert (kept / "input").read_bytes() == Path(source).read_bytes()


def test_the_file_beside_the_data_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    sizes = tmp_path / "golden.jsonl"
    sizes.write_bytes((folder / "sizes").read_bytes())
    (tmp_path / "rows.txt").write_bytes((folder / "rows.txt").read_bytes())
    (tmp_path / "rows.txt.query").symlink_to(sizes)
    options = ("--validation", tmp_path / "rows.txt", "-o", tmp_path)
    message = fail("export", "plain.podium", "--to", "solr", *options)
    assert f"{sizes} is one of the files to read. Name another folder." in message
    assert sizes.read_bytes() == (folder / "sizes").read_bytes()


def test_refusals_say_what_to_do() -> None:
    message = fail("export", "ranker.podium", "--to", "opensearch", "--engine-version", "3.1")
    assert "OpenSearch cannot express missing values" in message
    assert "--never-missing" in message
    options = ("--engine-version", "3.1", "--never-missing", "-o", "old")
    run("export", "ranker.podium", "--to", "opensearch", *options)
    message = fail("export", "lightgbm.txt", "--to", "vespa")
    assert "Podium does not write splits by categories for Vespa" in message
    message = fail("export", "ranker.podium", "--to", "solr", "-m", "nDCG@5")
    assert "--measure needs --validation" in message
    message = fail("export", "ranker.podium", "--to", "solr", "--format", "letor")
    assert "--format needs --validation" in message
    message = fail("export", "ranker.podium", "--to", "solr", "--name", "../x")
    assert "cannot be the name of a model" in message
    message = fail("export", "ranker.podium", "--to", "solr", "--engine-version", "new")
    assert "'new' is not a version" in message
    assert "no such file" in fail("verify", ".")
