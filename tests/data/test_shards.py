"""Shard sets: whole queries, what a manifest may say, and sets that were never finished."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset, ShardSet, concat_datasets, shard_writer, write_shards
from podium.data.atomic import try_lock
from podium.data.description import describe
from podium.errors import DataError
from tests.data.strategies import assert_same, datasets, unicode_strings

DATA = Dataset.from_arrays(
    np.arange(60).reshape(20, 3),
    labels=np.arange(20) % 3,
    group=[4] * 5,
    document_ids=[f"d{row}" for row in range(20)],
    feature_names=["a", "b", "c"],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished set of five shards, a query each."""
    assert len(write_shards(DATA, tmp_path / "set", shard_bytes=1).shards) == 5
    return tmp_path / "set"


@settings(max_examples=50)
@given(datasets(ids=unicode_strings, named=True), st.integers(1, 200), st.data())
def test_shards_hold_whole_queries_in_order(
    tmp_path_factory: pytest.TempPathFactory, data: Dataset, shard_bytes: int, draw: st.DataObject
) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    blocks = [data.select(np.arange(cut)), data.select(np.arange(cut, len(data)))]
    folder = tmp_path_factory.mktemp("shards") / "set"
    written = write_shards(blocks, folder, shard_bytes=shard_bytes)
    shard_set = ShardSet.open(folder)
    assert shard_set == written
    assert (shard_set.rows, shard_set.queries, len(shard_set)) == (data.rows, len(data), len(data))
    assert shard_set.feature_names == data.feature_names
    assert (shard_set.lowest_label, shard_set.highest_label) == (
        data.labels.min(),
        data.labels.max(),
    )
    assert_same(shard_set.load(), data)
    # Each shard can be read alone, in any order, and holds a piece of the whole.
    parts = [
        concat_datasets(list(shard_set.blocks([index]))) for index in range(len(shard_set.shards))
    ]
    assert [part.rows for part in parts] == [shard.rows for shard in shard_set.shards]
    assert [len(part) for part in parts] == [shard.queries for shard in shard_set.shards]
    assert_same(concat_datasets(parts), data)
    if data.feature_names:
        sizes = [part.features.nbytes for part in parts]
        assert all(
            size <= shard_bytes or len(part) == 1 for size, part in zip(sizes, parts, strict=True)
        )
    shard_set.verify()


def test_progress_ends_at_the_size(folder: Path) -> None:
    shard_set = ShardSet.open(folder)
    total = sum(shard.bytes for shard in shard_set.shards)
    for work in (lambda **more: list(shard_set.blocks(**more)), shard_set.load, shard_set.verify):
        seen: list[tuple[int, int | None]] = []
        work(progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen == sorted(seen)
        assert seen[-1] == (total, total)
    seen = []
    list(shard_set.blocks([3], progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (shard_set.shards[3].bytes, shard_set.shards[3].bytes)


def test_features_may_lie_on_disk(folder: Path, tmp_path: Path) -> None:
    data = ShardSet.open(folder).load(features_file=tmp_path / "features.npy")
    assert isinstance(data.features, np.memmap)
    assert_same(data, DATA)
    assert_same(data.normalize(), DATA.normalize())
    assert describe(data).lowest.tolist() == describe(DATA).lowest.tolist()
    with pytest.raises(DataError, match="cannot be written"):
        ShardSet.open(folder).load(features_file=tmp_path / "absent" / "features.npy")


def test_shards_may_grow_wider(tmp_path: Path) -> None:
    blocks = [
        Dataset.from_arrays(np.full((1, width), 7), labels=[0], qid=[str(width)])
        for width in (1, 2, 4)
    ]
    shard_set = write_shards(blocks, tmp_path / "set")
    assert len(shard_set.shards) == 3
    assert shard_set.feature_names == ("1", "2", "3", "4")
    assert shard_set.load().features.tolist() == [[7, 0, 0, 0], [7, 7, 0, 0], [7, 7, 7, 7]]


def test_some_blocks_without_document_ids(tmp_path: Path) -> None:
    named = Dataset.from_arrays([[1]], labels=[0], qid=["a"], document_ids=["d"])
    without = Dataset.from_arrays([[2]], labels=[0], qid=["b"])
    for index, blocks in enumerate(([named, without], [without, named])):
        for shard_bytes in (1, 1000):
            folder = tmp_path / f"{index}-{shard_bytes}"
            assert_same(
                write_shards(blocks, folder, shard_bytes=shard_bytes).load(),
                concat_datasets(blocks),
            )


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ([], "there is no data to write"),
        ([DATA, DATA], "the rows of query '0' are not contiguous"),
        (
            [DATA, Dataset.from_arrays([[1.0]], labels=[0], qid=["x"])],
            "two blocks have different features",
        ),
    ],
)
def test_what_cannot_be_written(blocks: list[Dataset], problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem) as caught:
        write_shards(blocks, tmp_path / "set", shard_bytes=1)
    assert caught.value.path == str(tmp_path / "set")
    with pytest.raises(DataError, match=r"unfinished shard set.*Run the conversion again"):
        ShardSet.open(tmp_path / "set")
    # What is left does not stand in the way of another try.
    assert_same(write_shards(DATA, tmp_path / "set").load(), DATA)


def test_folders_that_are_taken(folder: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(DataError, match="is not empty"):
        write_shards(DATA, folder)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty"):
        write_shards(DATA, tmp_path / "other")
    with pytest.raises(DataError, match=r"other.notes\.txt: cannot be written"):
        write_shards(DATA, tmp_path / "other" / "notes.txt")
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"


def test_a_failing_source_leaves_an_unfinished_set(tmp_path: Path) -> None:
    def blocks():
        yield from (DATA.select([index]) for index in range(4))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_shards(blocks(), tmp_path / "set", shard_bytes=1)
    assert list((tmp_path / "set").glob("part-*"))
    with pytest.raises(DataError, match="unfinished"):
        ShardSet.open(tmp_path / "set")


@pytest.mark.parametrize("gone", ["manifest.json", "manifest.json and a part", "nothing"])
def test_an_unfinished_set_is_begun_anew(folder: Path, gone: str) -> None:
    # A run that was killed before, or just after, the manifest appeared.
    (folder / "unfinished").write_text("")
    (folder / "part-00009.parquet.partial").write_bytes(b"half")
    (folder / "manifest.json.partial").write_bytes(b"half")
    if gone != "nothing":
        (folder / "manifest.json").unlink()
    if "part" in gone:
        (folder / "part-00002.parquet").unlink()
    two = DATA.select([0, 1])
    assert_same(write_shards(two, folder).load(), two)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "part-00000.parquet"]


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second is refused, and takes nothing away from the first."""

    def blocks():
        yield DATA.select([0])
        before = sorted((tmp_path / "set").iterdir())
        with pytest.raises(DataError, match="is being written by another process"):
            write_shards(DATA, tmp_path / "set")
        assert sorted((tmp_path / "set").iterdir()) == before
        yield DATA.select([1])

    shard_set = write_shards(blocks(), tmp_path / "set", shard_bytes=1)
    assert_same(shard_set.load(), DATA.select([0, 1]))
    with pytest.raises(DataError, match="is not empty"):
        write_shards(DATA, tmp_path / "set")


def test_a_set_that_was_finished_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer ends between our look for the marker and our lock on it."""
    folder = tmp_path / "set"
    lock = try_lock

    def finish_first(stream):
        monkeypatch.setattr(shard_writer, "try_lock", lock)
        (folder / "unfinished").unlink()
        (folder / "manifest.json").write_text("whole")
        return lock(stream)

    monkeypatch.setattr(shard_writer, "try_lock", finish_first)
    with pytest.raises(DataError, match="is being written by another process"):
        write_shards(DATA, folder)
    assert (folder / "manifest.json").read_text() == "whole"


def test_folders_that_are_no_set(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent", tmp_path / "file"):
        with pytest.raises(DataError, match=r"no manifest.*podium convert") as caught:
            ShardSet.open(path)
        assert caught.value.path == str(path)


Change = Callable[[dict[str, Any]], object]


def in_shard(**changes: object) -> Change:
    return lambda manifest: manifest["shards"][1].update(changes)


WRONG: dict[str, tuple[Change, str]] = {
    "path above": (in_shard(file="../part-00001.parquet"), "outside its folder"),
    "absolute path": (in_shard(file="/etc/passwd"), "outside its folder"),
    "path below": (in_shard(file="x/part-00001.parquet"), "outside its folder"),
    "folder itself": (in_shard(file="."), "outside its folder"),
    "folder above": (in_shard(file=".."), "outside its folder"),
    "no name": (in_shard(file=""), "outside its folder"),
    "NUL in a name": (in_shard(file="a\0b"), "the file is missing"),
    "missing file": (in_shard(file="part-00007.parquet"), "the file is missing"),
    "manifest as shard": (in_shard(file="manifest.json"), "in the manifest"),
    "numeric name": (in_shard(file=7), "a name is not a string"),
    "name twice": (in_shard(file="part-00000.parquet"), "duplicate name"),
    "size": (in_shard(bytes=1), "1 in the manifest"),
    "size of text": (in_shard(bytes="1"), "not a positive integer"),
    "rows that do not add up": (in_shard(rows=5), "do not add up"),
    "rows below 1": (in_shard(rows=-4), "not a positive integer"),
    "rows of truth": (in_shard(rows=True), "not a positive integer"),
    "queries that do not add up": (in_shard(queries=2), "do not add up"),
    "checksum of nothing": (in_shard(sha256=None), "a name is not a string"),
    "unknown key of a shard": (in_shard(color="red"), "unexpected keyword"),
    "shard of text": (lambda manifest: manifest["shards"].append("x"), "is not a valid manifest"),
    "no shards": (lambda manifest: manifest.update(shards=[]), "do not add up"),
    "shards of null": (lambda manifest: manifest.update(shards=None), "is not a valid manifest"),
    "shards lacking": (lambda manifest: manifest.pop("shards"), "'shards'"),
    "rows of all": (lambda manifest: manifest.update(rows=10**15), "do not add up"),
    "rows of fractions": (lambda manifest: manifest.update(rows=20.0), "not a positive integer"),
    "queries of all": (lambda manifest: manifest.update(queries=4), "do not add up"),
    "unknown key": (lambda manifest: manifest.update(color="red"), "unexpected keyword"),
    "names of text": (lambda manifest: manifest.update(feature_names="abc"), "is not a string"),
    "names of numbers": (lambda manifest: manifest.update(feature_names=[1, 2, 3]), "not a string"),
    "a name of features twice": (
        lambda manifest: manifest.update(feature_names=["a", "b", "b"]),
        "duplicate name",
    ),
    "label of text": (lambda manifest: manifest.update(lowest_label="0"), "label is not a number"),
    "label NaN": (lambda manifest: manifest.update(highest_label=float("nan")), "is not a number"),
    "label beyond a float": (lambda manifest: manifest.update(highest_label=10**400), "manifest"),
    "version of tomorrow": (
        lambda manifest: manifest.update(version=2, more="things"),
        "has format version 2, this version of Podium reads 1",
    ),
    "version of text": (lambda manifest: manifest.update(version="1"), "has format version 1"),
    "version lacking": (lambda manifest: manifest.pop("version"), "'version'"),
}


@pytest.mark.parametrize(("change", "problem"), WRONG.values(), ids=WRONG)
def test_manifests_that_were_changed(change: Change, problem: str, folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(DataError) as caught:
        ShardSet.open(folder)
    assert problem in caught.value.problem
    assert str(folder) in str(caught.value.path)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"7", b"\xff\xff", b"\x00" * 100, b"[" * 100_000, b'"x"']
)
def test_manifests_that_are_none(text: bytes, folder: Path) -> None:
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(DataError, match="is not a valid manifest"):
        ShardSet.open(folder)


def test_manifest_cut_short_anywhere(folder: Path) -> None:
    path = folder / "manifest.json"
    whole = path.read_bytes()
    for size in range(0, len(whole.rstrip()), 3):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="is not a valid manifest"):
            ShardSet.open(folder)


def test_a_manifest_that_is_a_folder(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").mkdir()
    with pytest.raises(DataError, match="no manifest"):
        ShardSet.open(folder)


def test_a_missing_shard(folder: Path) -> None:
    (folder / "part-00003.parquet").unlink()
    with pytest.raises(DataError, match=r"part-00003\.parquet: is damaged \(the file is missing"):
        ShardSet.open(folder)


def test_a_shard_cut_short(folder: Path) -> None:
    path = folder / "part-00003.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"part-00003.*bytes, .* in the manifest"):
        ShardSet.open(folder)


def test_a_shard_that_changes_after_opening(folder: Path) -> None:
    shard_set = ShardSet.open(folder)
    path = folder / "part-00003.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    for work in (lambda: list(shard_set.blocks()), shard_set.load, shard_set.verify):
        with pytest.raises(DataError, match="in the manifest"):
            work()
    path.write_bytes(whole[:40] + b"\xff" * 60 + whole[100:])
    with pytest.raises(DataError, match=r"part-00003.*checksum differs from the manifest"):
        shard_set.verify()
    path.write_bytes(b"x" * len(whole))
    with pytest.raises(DataError, match="is damaged"):
        shard_set.load()


def test_shards_of_another_set_with_a_manifest_to_match(folder: Path, tmp_path: Path) -> None:
    """Files may be exchanged, and their sizes and rows in the manifest with them."""
    others = {
        "differ from the manifest": Dataset.from_arrays(np.ones((4, 3)), np.ones(4), group=[4]),
        "not the 4 rows": Dataset.from_arrays(
            np.ones((8, 3)), np.ones(8), group=[4, 4], feature_names=["a", "b", "c"]
        ),
    }
    for problem, other in others.items():
        write_shards(other, tmp_path / problem)
        (part,) = (tmp_path / problem).glob("part-*")
        (folder / "part-00001.parquet").write_bytes(part.read_bytes())
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["shards"][1]["bytes"] = part.stat().st_size
        (folder / "manifest.json").write_text(json.dumps(manifest))
        shard_set = ShardSet.open(folder)
        with pytest.raises(DataError, match="checksum"):
            shard_set.verify()
        with pytest.raises(DataError, match=problem):
            shard_set.load()


def test_names_of_features_are_kept_whatever_they_are(tmp_path: Path) -> None:
    names = ["", "a b", "\u2028", "'", '"', "../x", "é" * 100]
    data = Dataset.from_arrays(np.ones((1, 7)), labels=[1], group=[1], feature_names=names)
    assert write_shards(data, tmp_path / "set").load().feature_names == tuple(names)
    assert_same(ShardSet.open(tmp_path / "set").load(), data)
