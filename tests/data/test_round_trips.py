"""What is written reads back identically: every format, path and stream, plain and compressed."""

import io
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset, Rankings, concat_datasets, read_letor, write_letor
from podium.data.format_registry import FORMATS, Format
from podium.data.query_rows import QueryRows
from podium.errors import DataError
from tests.data import strategies as some


def without_negative_zeros(data: Dataset) -> Dataset:
    """A column of integers in a table has no -0."""
    return replace(data, features=data.features + np.float32(0), labels=data.labels + np.float32(0))


CONTENTS: dict[str, st.SearchStrategy[Any]] = {
    "letor": some.datasets(),
    "csv": some.datasets().map(without_negative_zeros),
    "tsv": some.datasets().map(without_negative_zeros),
    "parquet": some.datasets(ids=some.unicode_strings, named=True),
    "shards": some.datasets(ids=some.unicode_strings, named=True),
    "qrels": some.judgments(),
    "run": some.rankings(),
    "pairs": some.preferences(ids=some.words.filter(lambda word: word != "=")),
    "prefs": some.preference_levels(),
    "qrels-prefs": some.preference_levels(subgroups=False),
    "jsonl": some.candidate_lists,
    "workbench": some.judgments(ids=some.unicode_strings),
    "qrels-parquet": some.judgments(ids=some.unicode_strings),
    "run-parquet": some.rankings(ids=some.unicode_strings),
    "pairs-parquet": some.preferences(ids=some.unicode_strings),
    "prefs-parquet": some.preference_levels(ids=some.unicode_strings),
}
TEXT_FORMATS = [name for name in FORMATS if "parquet" not in name and name != "shards"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def read(entry: Format, source: Any) -> Any:
    actual = entry.read(source)
    return actual if isinstance(actual, QueryRows) else list(actual)


def expect(actual: Any, written: Any) -> None:
    if not isinstance(written, QueryRows):
        assert actual == written
        return
    some.assert_same(actual, written)
    if isinstance(written, Rankings):
        assert actual.name == written.name


def test_every_format_is_tested() -> None:
    assert CONTENTS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", CONTENTS)
def test_files(name: str) -> None:
    entry = FORMATS[name]

    @settings(max_examples=40)
    @given(CONTENTS[name])
    def check(content: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "content"
            entry.write(content, path)
            expect(read(entry, path), content)
            expect(read(entry, str(path)), content)
            if entry.kind is Dataset and entry.stream is not None:
                expect(concat_datasets(list(entry.stream(path))), content)
            assert {each.name for each in Path(folder).iterdir()} == {"content"}

    check()


@pytest.mark.parametrize("name", [name for name in CONTENTS if name != "shards"])
def test_streams(name: str) -> None:
    entry = FORMATS[name]

    @settings(max_examples=25)
    @given(CONTENTS[name])
    def check(content: Any) -> None:
        entry.write(content, stream := io.BytesIO())
        expect(read(entry, io.BytesIO(stream.getvalue())), content)
        assert not stream.closed

    check()


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_compressed_files(name: str, suffix: str) -> None:
    entry = FORMATS[name]

    @settings(max_examples=10)
    @given(CONTENTS[name])
    def check(content: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"content{suffix}"
            entry.write(content, path)
            magic = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}[suffix]
            assert path.read_bytes().startswith(magic)
            expect(read(entry, path), content)
            other = path.rename(path.with_suffix(".renamed"))  # contents tell, not the name
            expect(read(entry, other), content)

    check()


@settings(max_examples=40)
@given(some.datasets())
def test_letor_from_index_zero(data: Dataset) -> None:
    write_letor(data, out := io.BytesIO(), zero_based=True)
    some.assert_same(read_letor(io.BytesIO(out.getvalue()), zero_based=True), data)
    if data.feature_names:
        with pytest.raises(DataError, match="index 0"):
            read_letor(io.BytesIO(out.getvalue()))


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_parquet_is_not_compressed_twice(folder: Path, suffix: str) -> None:
    data = Dataset.from_arrays([[1.0]], labels=[1], group=[1])
    with pytest.raises(DataError, match="compressed internally"):
        FORMATS["parquet"].write(data, folder / f"data.parquet.{suffix}")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("name", ["letor", "qrels", "run", "prefs"])
@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "a\n", "\r", "a\x00b", "\x1f"])
def test_ids_that_a_text_format_cannot_hold_are_refused(name: str, bad: str, folder: Path) -> None:
    entry = FORMATS[name]
    for query, document in ((bad, "d"), ("q", bad)):
        if name == "letor":
            content = Dataset.from_arrays([[1.0]], labels=[1], qid=[query], document_ids=[document])
        elif name == "prefs":
            content = entry.kind.from_columns([query], ["g"], ["s"], [document], [1.0])  # type: ignore[attr-defined]
        else:
            content = entry.kind.from_columns([query], [document], [1.0])  # type: ignore[attr-defined]
        with pytest.raises(DataError, match="white space"):
            entry.write(content, folder / "out")
        assert not list(folder.iterdir())


def test_the_tag_of_a_run_is_one_word() -> None:
    for name, tag in {"my run": "my_run", "a\x00\nb": "a_b", "": "podium", "é☃": "é☃"}.items():
        run = Rankings.from_columns(["q"], ["d"], [1.0], name=name)
        FORMATS["run"].write(run, out := io.BytesIO())
        assert read(FORMATS["run"], io.BytesIO(out.getvalue())).name == tag


@pytest.mark.parametrize("name", ["qrels", "letor"])
def test_an_id_that_begins_with_a_byte_order_mark(name: str) -> None:
    entry = FORMATS[name]
    ids = ["\ufeffq", "\ufeff"]
    if name == "letor":
        content = Dataset.from_arrays([[1], [2]], labels=[0, 1], qid=ids)
    else:
        content = entry.kind.from_columns(ids, ids, [1.0, 2.0])  # type: ignore[attr-defined]
    entry.write(content, out := io.BytesIO())
    expect(read(entry, io.BytesIO(out.getvalue())), content)


def test_a_document_named_like_a_tie_is_refused() -> None:
    pairs = FORMATS["pairs"]
    content = pairs.kind.from_columns(["q"], ["="], ["b"], [0])  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="means a tie"):
        pairs.write(content, io.BytesIO())
    with pytest.raises(DataError, match="does not say which") as caught:
        pairs.read(io.BytesIO(b"q a b a\nq = b =\n"))
    assert caught.value.line == 2


def test_several_subgroups_need_prefs() -> None:
    content = FORMATS["prefs"].kind.from_columns(  # type: ignore[attr-defined]
        ["q", "q"], ["g", "g"], ["1", "2"], ["a", "b"], [1, 2]
    )
    with pytest.raises(DataError, match="several subgroups"):
        FORMATS["qrels-prefs"].write(content, io.BytesIO())
