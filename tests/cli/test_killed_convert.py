"""A conversion killed at any moment leaves nothing that reads as complete; again, it finishes."""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, ShardSet, read_letor, write_letor
from podium.errors import DataError
from tests.cli.run_podium import PODIUM, fail, succeed
from tests.data.strategies import assert_same

KILLS = 3


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text whose lines grow wider three times, which makes four shards."""
    random = np.random.default_rng(0)
    blocks = []
    for block, columns in enumerate((30, 35, 40, 45)):
        sizes = random.integers(1, 60, 400)
        rows = int(sizes.sum())
        blocks.append(
            Dataset.from_arrays(
                random.random((rows, columns)),
                labels=random.integers(0, 4, rows),
                group=sizes,
                query_ids=[f"q{block}-{query}" for query in range(len(sizes))],
                document_ids=[f"d{row}" for row in range(rows)],
            )
        )
    path = tmp_path_factory.mktemp("killed") / "large.txt"
    write_letor(blocks, path)
    return path


def convert_for(source: Path, folder: Path, seconds: float) -> tuple[int, float]:
    """Start a conversion and kill it when its folder has been there for some seconds.

    Returns the exit code, and the seconds from when the folder appeared to the end.
    """
    process = subprocess.Popen([PODIUM, "convert", source, folder], stderr=subprocess.DEVNULL)
    while process.poll() is None and not folder.exists():
        time.sleep(0.001)
    begin = time.perf_counter()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    return code, time.perf_counter() - begin


def opened(folder: Path) -> ShardSet | None:
    """The shard set in a folder, or None if it is refused as it should be."""
    try:
        return ShardSet.open(folder)
    except DataError as error:
        problem = str(error)
    begun = bool(list(folder.iterdir()))
    assert ("unfinished shard set" if begun else "is not a shard set") in problem
    return None


@pytest.mark.slow
def test_kill_at_random_moments(large: Path, tmp_path: Path) -> None:
    expected = read_letor(large)
    code, writing = convert_for(large, tmp_path / "timed", 600)
    assert code == 0
    assert len(ShardSet.open(tmp_path / "timed").shards) == 4
    moments = np.random.default_rng(1).uniform(0, 1.1 * writing, KILLS).tolist()
    killed = 0
    for attempt, seconds in enumerate([0.0, *moments]):
        folder = tmp_path / f"set{attempt}"
        code, _ = convert_for(large, folder, seconds)
        killed += code == -signal.SIGKILL
        shard_set = opened(folder)
        if shard_set is None:
            succeed("convert", large, folder)
            shard_set = ShardSet.open(folder)
        elif code == 0:
            assert "is not empty" in fail("convert", large, folder)
        assert_same(shard_set.load(), expected)
        shard_set.verify()
        left = {path.name for path in folder.iterdir()} - {"unfinished"}
        assert left == {"manifest.json", *(shard.file for shard in shard_set.shards)}
    assert killed  # the first at least, which is killed as soon as its folder is there


@pytest.mark.slow
def test_kill_while_a_file_is_written_leaves_the_old_one(large: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_bytes(b"1 qid:old 1:1\n")
    process = subprocess.Popen([PODIUM, "convert", large, target], stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(tmp_path.glob("out.txt.*.partial")):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if list(tmp_path.glob("out.txt.*.partial")):
        assert target.read_bytes() == b"1 qid:old 1:1\n"
    else:  # the kill came after the new file had taken its place
        assert_same(read_letor(target), read_letor(large))
    succeed("convert", large, target)
    assert_same(read_letor(target), read_letor(large))
