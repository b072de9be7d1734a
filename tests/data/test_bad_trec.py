"""TREC files that are wrong: each error names file, line and remedy."""

import io
from pathlib import Path

import pytest

from podium.data.format_registry import FORMATS
from podium.errors import DataError

GOOD = {
    "qrels": "q 0 d{} 1",
    "run": "q Q0 d{} 1 0.5 tag",
    "pairs": "q d{} b b",
    "prefs": "q g s d{} 1",
    "qrels-prefs": "q g d{} 1",
}
NUMBER = {
    "qrels": (3, "label"),
    "run": (4, "score"),
    "prefs": (4, "level"),
    "qrels-prefs": (3, "level"),
}


def refused(name: str, text: bytes, path: Path) -> DataError:
    path.write_bytes(text)
    with pytest.raises(DataError) as caught:
        FORMATS[name].read(path)
    with pytest.raises(DataError) as of_stream:
        FORMATS[name].read(io.BytesIO(text))
    assert caught.value.path == str(path)
    assert of_stream.value.path == "stream"
    assert (of_stream.value.problem, of_stream.value.line) == (
        caught.value.problem,
        caught.value.line,
    )
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_wrong_columns(name: str, end: bytes, tmp_path: Path) -> None:
    lines = [GOOD[name].format(number).encode() for number in range(3)]
    columns = lines[0].split()
    wrong = [
        b" ".join(columns[:-1]),
        b" ".join([*columns, b"more"]),
        columns[0],
        b"\x00" * 20,
        b"\x00".join(columns),
        b"\x01 " + lines[0],
        lines[0] + b"\x0c",
        b",".join(columns),
    ]
    for bad in wrong:
        error = refused(name, b"\n".join([lines[0], b"", bad]) + end, tmp_path / "file")
        assert f"does not have the {len(columns)} columns" in error.problem
        assert error.line == 3


@pytest.mark.parametrize("name", NUMBER)
@pytest.mark.parametrize(
    "bad", ["x", "1x", "nan", "inf", "-Infinity", "1e999", "0x1", "1,5", "é", "-"]
)
def test_wrong_numbers(name: str, bad: str, tmp_path: Path) -> None:
    column, what = NUMBER[name]
    words = GOOD[name].format("x").split()
    words[column] = bad
    text = f"{GOOD[name].format(1)}\n\n{' '.join(words)}\n{GOOD[name].format(2)}\n".encode()
    error = refused(name, text, tmp_path / "file")
    assert error.problem == f"{bad!r} is not a finite number for the {what}"
    assert error.line == 3


def test_a_label_beyond_float32(tmp_path: Path) -> None:
    error = refused("qrels", b"q 0 a 1\nq 0 b 1e39\n", tmp_path / "file")
    assert error.problem == "'1e39' is not a finite number for the label"
    assert error.line == 2


def test_a_long_number_is_not_shown_whole(tmp_path: Path) -> None:
    error = refused("qrels", b"q 0 a " + b"z" * 1000, tmp_path / "file")
    assert len(str(error)) < 300


@pytest.mark.parametrize("name", GOOD)
def test_ids_that_are_not_utf_8(name: str, tmp_path: Path) -> None:
    good = GOOD[name].format(1).encode()
    for bad in (good.replace(b"q ", b"caf\xe9 ", 1), good.replace(b"d1", b"\xff")):
        error = refused(name, good + b"\n" + bad + b"\n", tmp_path / "file")
        assert "is not UTF-8" in error.problem
        assert error.line == 2


@pytest.mark.parametrize("name", NUMBER)
def test_the_first_wrong_line_is_reported(name: str, tmp_path: Path) -> None:
    """Columns are checked of all lines first, then ids, then numbers."""
    good = GOOD[name].format(1).encode()
    words = good.split()
    words[NUMBER[name][0]] = b"x"
    wrong = {
        "is not a finite number": b" ".join(words),
        "is not UTF-8": good.replace(b"d1", b"\xff"),
        "columns": b"q",
    }
    for problem, line in wrong.items():
        for later in wrong.values():
            error = refused(name, b"\n".join([good, line, later, b""]), tmp_path / "file")
            assert problem in error.problem
            assert error.line == 2


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("text", [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf"])
def test_files_without_a_line(name: str, text: bytes, tmp_path: Path) -> None:
    assert "has no data" in refused(name, text, tmp_path / "file").problem


@pytest.mark.parametrize("name", ["qrels", "run"])
def test_a_document_that_comes_twice(name: str, tmp_path: Path) -> None:
    lines = [GOOD[name].format(number) for number in (1, 2, 1)]
    error = refused(name, "\n".join(lines).encode(), tmp_path / "file")
    assert error.problem == "document 'd1' is listed twice in query 'q'"


@pytest.mark.parametrize(
    "bad", ["q a b c", "q a b A", "q a a a", "q a a =", "q a = =", "q = b b", "q a b =="]
)
def test_pairs_without_a_verdict(bad: str, tmp_path: Path) -> None:
    error = refused("pairs", f"q a b a\n\n{bad}\nq a b b\n".encode(), tmp_path / "file")
    assert "does not say which of two documents" in error.problem
    assert error.line == 3


@pytest.mark.parametrize("name", GOOD)
def test_white_space_and_marks_do_not_matter(name: str) -> None:
    lines = [GOOD[name].format(number) for number in range(3)]
    plain = FORMATS[name].read(io.BytesIO("\n".join(lines).encode()))
    text = "\ufeff" + "\r\n\r\n".join("\t " + line.replace(" ", " \t ") + "  " for line in lines)
    assert FORMATS[name].read(io.BytesIO(text.encode())).equals(plain)


def test_queries_may_lie_apart() -> None:
    run = FORMATS["run"].read(io.BytesIO(b"q Q0 a 1 3 t\np Q0 a 1 2 t\nq Q0 b 2 1 t\n"))
    assert run.query_ids.to_pylist() == ["q", "p"]
    assert run.document_ids.to_pylist() == ["a", "b", "a"]
