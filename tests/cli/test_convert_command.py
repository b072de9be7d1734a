"""``podium convert`` in a process of its own."""

import os
import pty
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from podium.data import (
    Dataset,
    ShardSet,
    read_letor,
    read_parquet,
    read_qrels,
    write_letor,
    write_parquet,
)
from tests.cli.run_podium import PODIUM, fail, podium, podium_process, read_terminal, succeed
from tests.data.strategies import assert_same

DATA = Dataset.from_arrays(
    np.arange(24).reshape(12, 2) / 8,
    labels=np.arange(12) % 3,
    group=[5, 4, 3],
    query_ids=["a", "b", "c"],
    document_ids=[f"d{row}" for row in range(12)],
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_letor(DATA, tmp_path / "train.txt")
    return tmp_path / "train.txt"


def test_through_formats_to_shards_and_back(source: Path, tmp_path: Path) -> None:
    steps = [source, tmp_path / "x.parquet", tmp_path / "set", tmp_path / "y.txt.gz"]
    for one, other in pairwise(steps):
        assert succeed("convert", one, other) == ""
    assert_same(ShardSet.open(tmp_path / "set").load(), DATA)
    assert_same(read_letor(tmp_path / "y.txt.gz"), DATA)


@pytest.mark.parametrize("name", ["x.txt/", "x.parquet/", "x.qrels/", "x.txt.gz/"])
def test_a_file_name_with_a_slash_is_refused(source: Path, tmp_path: Path, name: str) -> None:
    message = fail("convert", source, f"{tmp_path}/{name}")
    assert f"{name}: cannot be written (a slash at the end names a folder)" in message
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]
    message = fail("convert", f"{source}/", tmp_path / "y.txt")
    assert "train.txt/: names a folder, a file is needed" in message
    assert [path.name for path in tmp_path.iterdir()] == ["train.txt"]


def test_standard_input_and_output(source: Path, tmp_path: Path) -> None:
    text = source.read_bytes()
    assert succeed("convert", "-", "-", "--from", "letor", "--to", "letor", stdin=text) == (
        text.decode()
    )
    packed = podium("convert", source, "-", "--to", "parquet")
    assert packed.stderr == b""
    (tmp_path / "out.parquet").write_bytes(packed.stdout)
    assert_same(read_parquet(tmp_path / "out.parquet", Dataset), DATA)
    judged = succeed("convert", "-", "-", "--from", "parquet", "--to", "qrels", stdin=packed.stdout)
    assert judged.splitlines() == [
        f"{query} 0 {document} {label:g}"
        for query, document, label in zip(
            DATA.query_id_of_row().to_pylist(),
            DATA.document_ids.to_pylist(),
            DATA.labels.tolist(),
            strict=True,
        )
    ]


def test_changes(source: Path, tmp_path: Path) -> None:
    changes = ("--top-k", 2, "--seed", 7, "--normalize", "z-score")
    succeed("convert", source, tmp_path / "out.parquet", *changes)
    expected = DATA.normalize("z-score").top_k(2, random_state=7)
    assert_same(read_parquet(tmp_path / "out.parquet", Dataset), expected)


@pytest.mark.slow
def test_options_of_letor(tmp_path: Path) -> None:
    (tmp_path / "zero.txt").write_bytes(b"1 0:nan 1:2\n0 1:3\n")
    (tmp_path / "sizes").write_bytes(b"1\n1\n")
    options = ("--zero-based", "--keep-nonfinite", "--group", tmp_path / "sizes")
    succeed("convert", tmp_path / "zero.txt", tmp_path / "out.txt", *options)
    assert (tmp_path / "out.txt").read_bytes() == b"1 qid:0 1:NULL 2:2\n0 qid:1 1:0 2:3\n"


@pytest.mark.slow
def test_rows_apart(tmp_path: Path) -> None:
    path = tmp_path / "mixed.txt"
    path.write_bytes(b"1 qid:a 1:1 #docid = x\n2 qid:b 1:2 #docid = x\n3 qid:a #docid = y\n")
    assert "are not contiguous" in fail("convert", path, tmp_path / "out.qrels")
    succeed("convert", path, tmp_path / "out.qrels", "--whole")
    assert read_qrels(tmp_path / "out.qrels").labels.tolist() == [1, 3, 2]


def test_an_error_is_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"1 qid:1 1:1\n1 qid:1 1:\x1b[2J:bug:[red]\n")
    message = fail("convert", bad, tmp_path / "out")
    assert message == (
        f"{bad}, line 2: '1:\\x1b[2J:bug:[red]' has no number after the colon. Fix the line."
    )


@pytest.mark.slow
def test_errors(source: Path, tmp_path: Path) -> None:
    assert "no such file" in fail("convert", tmp_path / "absent.txt", tmp_path / "other")
    assert "cannot be inferred" in fail("convert", source, tmp_path / "out.xls")
    assert "'xls'" in fail("convert", source, tmp_path / "out.txt", "--to", "xls")
    assert "letor cannot be converted to run" in fail("convert", source, tmp_path / "out.run")
    assert "has no option --zero-based" in fail(
        "convert", tmp_path / "x.parquet", tmp_path / "out.txt", "--zero-based"
    )
    assert "cannot be written" in fail("convert", source, tmp_path / "no" / "such" / "folder.txt")
    assert "seed is" in fail("convert", source, tmp_path / "o.txt", "--top-k", 1, "--seed", 2**70)
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.slow
def test_control_characters_of_names_are_not_printed(tmp_path: Path) -> None:
    hostile = tmp_path / "\x1b]0;owned\x07[bold]\udcff.txt"
    assert "\ufffd]0;owned\ufffd[bold]\ufffd.txt: no such file" in fail(
        "convert", hostile, tmp_path / "out"
    )


@pytest.mark.slow
def test_wrong_usage_is_exit_code_2(source: Path) -> None:
    for arguments in (("--top-k", 0), ("--normalize", "rank"), ("--color", "red")):
        done = podium("convert", source, "out", *arguments)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_an_existing_folder_is_kept(source: Path, tmp_path: Path) -> None:
    succeed("convert", source, tmp_path / "set")
    assert "is not empty" in fail("convert", source, tmp_path / "set")
    assert_same(ShardSet.open(tmp_path / "set").load(), DATA)


@pytest.mark.slow
def test_readers_that_leave_early(tmp_path: Path) -> None:
    write_letor(
        Dataset.from_arrays(np.ones((50_000, 8)), labels=np.zeros(50_000), group=[50_000]),
        tmp_path / "large.txt",
    )
    command = f"{PODIUM} convert {tmp_path / 'large.txt'} - --to letor | head -c 20"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300)
    assert len(done.stdout) == 20
    assert done.stderr == b""


def on_a_terminal(*arguments: object) -> tuple[int, bytes, bytes]:
    """Run the command with standard error on a terminal; its exit code, output and terminal."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [PODIUM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=end,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(end)
    seen = read_terminal(terminal)
    output, _ = process.communicate(timeout=300)
    return process.returncode, output, seen


def test_progress_is_shown_on_a_terminal_only(source: Path) -> None:
    code, output, seen = on_a_terminal("convert", source, "-", "--to", "letor")
    assert code == 0
    assert output == source.read_bytes()
    assert b"Converting" in seen
    # `succeed` holds that nothing is printed where standard error is not a terminal.
    assert succeed("convert", source, "-", "--to", "letor").encode() == output


@pytest.mark.slow
def test_errors_on_a_terminal_are_the_same_line(tmp_path: Path) -> None:
    code, output, seen = on_a_terminal("convert", tmp_path / "absent.txt", "-", "--to", "letor")
    assert (code, output) == (2, b"")
    assert b"no such file" in seen
    assert b"Traceback" not in seen


@pytest.mark.slow
def test_threads_that_cannot_be(source: Path) -> None:
    done = podium_process("convert", source, "-", "--to", "letor", PODIUM_THREADS="many")
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "Error: PODIUM_THREADS is 'many'. Set it to an integer from 1 to 999999.\n"
    )


@pytest.mark.slow
def test_a_parquet_file_without_rows(tmp_path: Path) -> None:
    write_parquet(DATA.select([]), tmp_path / "empty.parquet")
    assert "no data to write" in fail("convert", tmp_path / "empty.parquet", tmp_path / "set")
