"""Where chunks of a file end changes nothing: not the data, not the line of an error."""

import io
from pathlib import Path

import pytest

from podium.data import (
    concat_datasets,
    files,
    read_jsonl,
    read_letor,
    read_pairs,
    read_qrels,
    read_run,
)
from podium.data.formats.letor import iter_letor
from podium.data.stream import widen
from podium.errors import DataError
from tests.data.strategies import assert_same

LETOR = (
    "2 qid:1 1:0.5 2:7 #docid = a\n0 qid:1 2:1\r\n\n# comment\n1 qid:été 1:3 #docid = c\n"
    "0 qid:12 1:-1e-3 4:NULL 5:0.1234567890123456789\n0 qid:12 1:7\n3 qid:x"
).encode()
SIZES = [*range(1, 40), 64, 100, 1000]


@pytest.fixture(params=["plain", "stream"])
def source_of(request: pytest.FixtureRequest, tmp_path: Path):
    """Makes a source of bytes: a plain file, whose parts threads read, or a stream."""

    def make(text: bytes) -> object:
        if request.param == "stream":
            return io.BytesIO(text)
        path = tmp_path / "source"
        path.write_bytes(text)
        return path

    return make


def test_letor(source_of, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_letor(io.BytesIO(LETOR))
    assert (whole.rows, len(whole), len(whole.feature_names)) == (6, 4, 5)
    for size in SIZES:
        monkeypatch.setattr(files, "CHUNK_BYTES", size)
        assert_same(read_letor(source_of(LETOR)), whole)
        blocks = [widen(block, whole.feature_names) for block in iter_letor(source_of(LETOR))]
        assert_same(concat_datasets(blocks), whole)


def test_lines_of_letor_errors(source_of, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"1 qid:{index} 1:{index}\n".encode() for index in range(12)]
    wrong = {b"1 qid:x 1:?\n": "1:?", b"1 qid:\xff 1:1\n": "UTF-8", b"1 qid:x #\x00\n": "NUL"}
    for index in (0, 5, 11):
        for bad, problem in wrong.items():
            text = b"".join([*lines[:index], b"\r\n", bad, *lines[index:]])
            for size in (1, 7, 13, 40, 1000):
                monkeypatch.setattr(files, "CHUNK_BYTES", size)
                for read in (read_letor, lambda source: list(iter_letor(source))):
                    with pytest.raises(DataError, match=problem.replace("?", r"\?")) as caught:
                        read(source_of(text))
                    assert caught.value.line == index + 2


def test_the_first_of_two_errors_is_told(source_of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK_BYTES", 10)
    monkeypatch.setenv("PODIUM_THREADS", "4")
    text = b"1 qid:1 1:1\n" * 5 + b"1 qid:1 1:x\n" + b"1 qid:1 1:y\n" * 9
    for _ in range(20):
        with pytest.raises(DataError, match="'1:x'") as caught:
            read_letor(source_of(text))
        assert caught.value.line == 6


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (read_qrels, "q{0} 0 d{0} {0}\n", "q 0 d\n"),
        (read_qrels, "q{0} 0 d{0} {0}\n", "q 0 d 1x\n"),
        (read_run, "q Q0 d{0} 1 0.{0} tag\n", "q Q0 d 1 nan tag\n"),
        (read_pairs, "q a{0} b b\n", "q a b c\n"),
        (
            lambda source: list(read_jsonl(source)),
            '{{"query_id": "q{0}", "query": "é", "candidates": []}}\n',
            '{"query_id": "x"}\n',
        ),
    ],
)
def test_other_formats(read, good: str, bad: str, source_of, monkeypatch) -> None:
    lines = [good.format(index).encode() for index in range(9)]
    whole = read(io.BytesIO(b"".join(lines)))
    for size in (1, 5, 17, 50, 1000):
        monkeypatch.setattr(files, "CHUNK_BYTES", size)
        actual = read(source_of(b"".join(lines)))
        if isinstance(whole, list):
            assert actual == whole
        else:
            assert_same(actual, whole)
        text = b"".join([*lines[:4], b"\n", bad.encode(), *lines[4:]])
        with pytest.raises(DataError) as caught:
            read(source_of(text))
        assert caught.value.line == 6
