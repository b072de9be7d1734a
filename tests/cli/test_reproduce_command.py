"""Run folders: what they record, and whether training again gives the same ranker."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from podium.data import write_letor, write_shards
from podium.measures import evaluate
from podium.rankers import load_ranker
from tests.cli.run_podium import fail, podium
from tests.rankers.made_up import made_up

TRAIN = ("train", "train.txt", "--validation", "held.txt", "--scorer", "linear", "--run-dir")
HELD = made_up(10, noise=0.5, seed=1)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a recorded run."""
    folder = tmp_path_factory.mktemp("recorded")
    write_letor(made_up(20, noise=0.5), folder / "train.txt")
    write_letor(HELD, folder / "held.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = podium(*TRAIN, "run", "--set", "alpha=0.01", "--seed", "7")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the current folder."""
    shutil.copytree(recorded, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def change(folder: Path, **values: object) -> None:
    file = folder / "run/run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_the_record_has_what_a_reader_needs(folder: Path) -> None:
    record = json.loads((folder / "run/run.json").read_text())
    assert record["command"] == f"podium {' '.join(TRAIN)} run --set alpha=0.01 --seed 7"
    assert record["digests"] == {
        name: sha256((folder / name).read_bytes()).hexdigest() for name in ("train.txt", "held.txt")
    }
    assert (record["random_state"], record["parameters"]["alpha"]) == (7, 0.01)
    assert record["ranker"] == sha256((folder / "run/ranker.podium").read_bytes()).hexdigest()
    assert {"python", "podium", "numpy", "numba"} < set(record["versions"])
    assert record["report"]["training"]["queries"] == 20
    ranker = load_ranker(folder / "run/ranker.podium")
    value = evaluate("nDCG@10", HELD, ranker.predict(HELD)).means["nDCG@10"]
    assert record["report"]["validation_measure"]["nDCG@10"] == pytest.approx(value, rel=1e-9)
    assert sorted(each.name for each in (folder / "run").iterdir()) == ["ranker.podium", "run.json"]


@pytest.mark.usefixtures("folder")
def test_the_same_data_give_the_same_ranker() -> None:
    done = podium("reproduce", "run", "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["same_ranker"] is outcome["same_measures"] is True
    assert outcome["saved_ranker_is_recorded"] is True
    assert outcome["measures"]["then"] == outcome["measures"]["now"]
    assert outcome["other_versions"] == {}
    assert outcome["other_machine"] is None


def test_paths_are_those_of_the_recorded_folder_elsewhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(folder, directory=str(folder))
    monkeypatch.chdir(tmp_path)
    assert podium("reproduce", folder / "run").returncode == 0


@pytest.mark.parametrize("name", ["train.txt", "held.txt"])
def test_other_data_are_refused(folder: Path, name: str) -> None:
    lines = (folder / name).read_text().splitlines()
    (folder / name).write_text("\n".join(lines[:-1]) + "\n")
    message = fail("reproduce", "run")
    assert message.startswith(f"{name}: is not what the ranker was trained on")


def test_rows_per_query_beside_the_data_belong_to_them(folder: Path) -> None:
    rows = (f"{row % 3} 1:{row % 7} 2:{row % 5}" for row in range(60))
    (folder / "rows.txt").write_text("\n".join(rows) + "\n")
    sizes = folder / "rows.txt.query"
    sizes.write_text("10\n" * 6)
    done = podium("train", "rows.txt", "--scorer", "linear", "--run-dir", "grouped")
    assert done.returncode == 0, done.stderr
    record = json.loads((folder / "grouped/run.json").read_text())
    assert record["digests"]["rows.txt.query"] == sha256(sizes.read_bytes()).hexdigest()
    assert podium("reproduce", "grouped").returncode == 0
    sizes.write_text("20\n" * 3)
    assert fail("reproduce", "grouped").startswith("rows.txt.query: is not what")
    sizes.unlink()
    assert fail("reproduce", "grouped").startswith("rows.txt.query: is not what")


def test_a_difference_is_told(folder: Path) -> None:
    record = json.loads((folder / "run/run.json").read_text())
    versions = record["versions"] | {"numpy": "1.0"}
    request = record["request"] | {"settings": {"alpha": 1.0}}
    change(folder, request=request, versions=versions, machine="another")
    done = podium("reproduce", "run")
    lines = dict(line.split("\t") for line in done.stdout.decode().splitlines())
    assert done.returncode == 1
    assert lines["ranker"] == "different bytes"
    assert lines["saved ranker"] == "as recorded"
    assert " then, " in lines["validation nDCG@10"]
    assert lines["version of numpy"] == f"1.0 then, {record['versions']['numpy']} now"
    assert lines["machine"].startswith("another then, ")


def test_a_ranker_that_was_swapped_is_told(folder: Path) -> None:
    with (folder / "run/ranker.podium").open("ab") as file:
        file.write(b"\0")
    outcome = json.loads(podium("reproduce", "run", "--json").stdout)
    assert outcome["same_ranker"] is True
    assert outcome["saved_ranker_is_recorded"] is False


def test_shards_are_recorded_by_all_their_files(folder: Path) -> None:
    write_shards(made_up(20), folder / "shards")
    arguments = ("train", "shards", "--scorer", "linear", "--run-dir", "sharded")
    assert podium(*arguments).returncode == 0
    assert podium("reproduce", "sharded").returncode == 0
    shard = next(folder.glob("shards/*.parquet"))
    shard.rename(shard.with_name("other.parquet"))
    assert fail("reproduce", "sharded").startswith("shards: is not what the ranker was trained on")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "train.txt"), "there is no file to save the ranker in"),
        (("train", "train.txt", "m", "--run-dir", "new"), "Leave out OUTPUT"),
        (("train", "train.txt", "--run-dir", "run"), "run is not an empty folder"),
        (("train", "-", "--run-dir", "new", "--format", "letor"), "standard input"),
        (("train", "train.txt", "--run-dir", "new", "--labels", "studio:http://a#1"), "studio"),
        (("train", "missing.txt", "--run-dir", "new"), "missing.txt: cannot be read"),
        (("reproduce", "missing"), "there is no record of a run"),
    ],
)
def test_mistakes_are_refused(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in fail(*arguments)
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "values",
    [
        {"format": "podium run 2"},
        {"request": {}},
        {"request": 3},
        {"digests": []},
        {"report": None},
    ],
)
def test_a_malformed_record_is_refused(folder: Path, values: dict[str, object]) -> None:
    change(folder, **values)
    assert "is not a record of a run" in fail("reproduce", "run")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", "studio:http://127.0.0.1:9#1"),
        ("seed", "7"),
        ("seed", True),
        ("seed", -1),
        ("data", "train\0.txt"),
        ("data", ["train.txt"]),
        ("output", "/etc/passwd"),
        ("data", None),
        ("seed", None),
        ("top_k", None),
        ("measure", None),
        ("settings", None),
        ("settings", [1]),
        ("validation", "\ud800"),
    ],
)
def test_a_hostile_request_is_refused(folder: Path, name: str, value: object) -> None:
    record = json.loads((folder / "run/run.json").read_text())
    change(folder, request=record["request"] | {name: value})
    assert "is not a record of a run" in fail("reproduce", "run")


def test_hostile_ways_of_reading_are_refused(folder: Path) -> None:
    request = json.loads((folder / "run/run.json").read_text())["request"]
    for name, value in (("zero_based", None), ("zero_based", 1), ("group", 3), ("other", "")):
        change(folder, request=request | {"reading": request["reading"] | {name: value}})
        assert "is not a record of a run" in fail("reproduce", "run")


def test_a_name_that_is_too_long_is_refused(folder: Path) -> None:
    record = json.loads((folder / "run/run.json").read_text())
    change(folder, request=record["request"] | {"data": "a" * 5000})
    assert "cannot be read" in fail("reproduce", "run")


def test_a_device_is_not_read(folder: Path) -> None:
    record = json.loads((folder / "run/run.json").read_text())
    change(folder, request=record["request"] | {"data": "/dev/zero"})
    assert fail("reproduce", "run").startswith("/dev/zero: is not a file")
    (folder / "run/run.json").unlink()
    (folder / "run/run.json").mkdir()
    assert "there is no record of a run" in fail("reproduce", "run")
    assert "there is no record of a run" in fail("reproduce", "train.txt")


def test_a_record_that_is_not_json_is_refused(folder: Path) -> None:
    for text in ("", "[" * 100_000, "\xff", "null"):
        (folder / "run/run.json").write_text(text, encoding="latin-1")
        assert "is not a record of a run" in fail("reproduce", "run")
