"""LETOR text that is wrong: each error names file, line and remedy, or a mode accepts it."""

import io
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, concat_datasets, read_letor
from podium.data.formats.letor import iter_letor
from podium.data.formats.text import read_group_sizes
from podium.errors import DataError
from tests.data.strategies import assert_same

GOOD = b"2 qid:1 1:0.5 2:7 #docid = a\n"

# The second line, what is said against it, and the word it is said about.
WRONG = {
    "label missing": (b"qid:1 1:2", "'qid:1' is not a valid label"),
    "label of letters": (b"good qid:1 1:2", "'good' is not a valid label"),
    "label half a number": (b"1x qid:1 1:2", "'1x' is not a valid label"),
    "label nan": (b"nan qid:1 1:2", "'nan' is not a valid label"),
    "label inf": (b"inf qid:1 1:2", "'inf' is not a valid label"),
    "label NULL": (b"NULL qid:1 1:2", "'NULL' is not a valid label"),
    "label too large": (b"1e39 qid:1 1:2", "'1e39' is not a finite float32"),
    "label far too large": (b"1e400 qid:1 1:2", "'1e400' is not a finite float32"),
    "no query": (b"1 1:2", "expected 'qid:ID' after the label, found '1:2'"),
    "nothing but a label": (b"1", "expected 'qid:ID' after the label, found ''"),
    "empty query id": (b"1 qid: 1:2", "expected 'qid:ID'"),
    "query with blank": (b"1 qid :7 1:2", "expected 'qid:ID'"),
    "query with substitute": (b"1 qid\x1a7 1:2", "expected 'qid:ID'"),
    "query last": (b"1 1:2 qid:7", "expected 'qid:ID'"),
    "no colon": (b"1 qid:7 1:2 3", "'3' is not 'index:value'"),
    "no index": (b"1 qid:7 :2", "':2' is not 'index:value'"),
    "index of letters": (b"1 qid:7 x:2", "'x:2' is not 'index:value'"),
    "negative index": (b"1 qid:7 -1:2", "'-1:2' is not 'index:value'"),
    "fractional index": (b"1 qid:7 1.5:2", "'1.5:2' is not 'index:value'"),
    "two queries": (b"1 qid:7 qid:8 1:2", "'qid:8' is not 'index:value'"),
    "no value": (b"1 qid:7 1: 2:3", "'1:' has no number"),
    "value of letters": (b"1 qid:7 1:x", "'1:x' has no number"),
    "value with comma": (b"1 qid:7 1:0,5", "'1:0,5' has no number"),
    "value with two points": (b"1 qid:7 1:0.5.1", "'1:0.5.1' has no number"),
    "value hexadecimal": (b"1 qid:7 1:0x1F", "'1:0x1F' has no number"),
    "two colons": (b"1 qid:7 1:2:3", "'1:2:3' has no number"),
    "comment without blank": (b"1 qid:7 1:2#docid = a", "'1:2#docid' has no number"),
    "nan": (b"1 qid:7 1:nan", "'1:nan' is not a finite float32"),
    "minus inf": (b"1 qid:7 1:-Inf", "'1:-Inf' is not a finite float32"),
    "infinity": (b"1 qid:7 1:INFINITY", "'1:INFINITY' is not a finite float32"),
    "value too large": (b"1 qid:7 1:3.5e38", "'1:3.5e38' is not a finite float32"),
    "value far too large": (b"1 qid:7 1:-1e999", "is not a finite float32"),
    "index zero": (b"1 qid:7 0:2", "'0:2' has index 0"),
    "index twice": (b"1 qid:7 1:2 1:3", "the index of '1:3' is not larger"),
    "indices descend": (b"1 qid:7 2:2 1:3", "the index of '1:3' is not larger"),
    "index zero later": (b"1 qid:7 2:2 0:3", "'0:3' has index 0"),
    "index huge": (b"1 qid:7 10001:1", "'10001:1' has an index above 10000"),
    "index of 15 digits": (b"1 qid:7 999999999999999:1", "has an index above 10000"),
    "index beyond an integer": (b"1 qid:7 18446744073709551617:1", "has an index above 10000"),
    "index of 100 digits": (b"1 qid:7 " + b"9" * 100 + b":1", "has an index above 10000"),
    "NUL in the label": (b"1\x00 qid:7 1:2", "expected 'qid:ID'"),
    "NUL in the query": (b"1 qid:7\x00 1:2", "is not 'index:value'"),
    "NUL in a value": (b"1 qid:7 1:2\x00", "is not 'index:value'"),
    "NUL in a comment": (b"1 qid:7 1:2 # a\x00b", "a NUL byte"),
    "NUL in a document id": (b"1 qid:7 1:2 #docid = a\x00b", "a NUL byte"),
    "NUL line": (b"\x00" * 30, "is not a valid label"),
    "NUL in a line of comment": (b"# \x00", "a NUL byte"),
    "form feed": (b"1 qid:7\x0c1:2", "is not 'index:value'"),
    "Latin-1 query": (b"1 qid:caf\xe9 1:2", r"b'caf\\xe9' is not UTF-8"),
    "Latin-1 document": (b"1 qid:7 1:2 #docid = \xe9t\xe9", "is not UTF-8"),
    "surrogate in a query": (b"1 qid:\xed\xa0\x80 1:2", "is not UTF-8"),
    "JSON": (b'{"label": 1}', "is not a valid label"),
    "comma separated": (b"1,7,0.5,2", "is not a valid label"),
}


@pytest.mark.parametrize("value", [b"1e39", b"-1e400", b"3.5e38", b"1e99999"])
@pytest.mark.parametrize("line", [b"%s qid:1 1:2\n", b"1 qid:1 1:%s\n"])
def test_the_hint_helps_where_a_number_is_too_large(value: bytes, line: bytes) -> None:
    """No option accepts it: keep_nonfinite takes words such as inf, and says nothing of labels."""
    for keep in (False, True):
        with pytest.raises(DataError, match="is not a finite float32") as caught:
            read_letor(io.BytesIO(line % value), keep_nonfinite=keep)
        assert "keep_nonfinite" not in caught.value.hint
        assert "3.4e38" in caught.value.hint
    assert np.isnan(read_letor(io.BytesIO(b"1 qid:1 1:inf\n"), keep_nonfinite=True).features).all()
    with pytest.raises(DataError) as caught:
        read_letor(io.BytesIO(b"1 qid:1 1:inf\n"))
    assert "keep_nonfinite=True" in caught.value.hint


def check(error: DataError, problem: str, line: int, path: str) -> None:
    assert problem.replace("\\\\", "\\") in error.problem
    assert (error.path, error.line) == (path, line)
    assert str(error).startswith(f"{path}, line {line}: ")
    assert error.hint
    assert error.hint in str(error)


@pytest.mark.parametrize(("wrong", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_lines(wrong: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    for end in (b"", b"\n", b"\r\n", b"\n" + GOOD):
        path.write_bytes(GOOD + wrong + end)
        with pytest.raises(DataError) as caught:
            read_letor(path)
        check(caught.value, problem, 2, str(path))
        with pytest.raises(DataError) as caught:
            list(iter_letor(path))
        check(caught.value, problem, 2, str(path))
        with pytest.raises(DataError) as caught:
            read_letor(io.BytesIO(path.read_bytes()))
        check(caught.value, problem, 2, "stream")


@pytest.mark.parametrize("later", ["label of letters", "label far too large", "Latin-1 query"])
@pytest.mark.parametrize(("wrong", "problem"), WRONG.values(), ids=WRONG)
def test_the_first_wrong_line_is_reported(wrong: bytes, problem: str, later: str) -> None:
    """Whatever it is that is wrong: some checks look at all lines before others look at any."""
    text = io.BytesIO(GOOD + wrong + b"\n" + GOOD + WRONG[later][0] + b"\n")
    with pytest.raises(DataError) as caught:
        read_letor(text)
    check(caught.value, problem, 2, "stream")


@pytest.mark.parametrize("value", ["nan", "NaN", "-nan", "inf", "+Inf", "-INFINITY"])
def test_not_finite_values_can_be_kept_as_missing(value: str) -> None:
    text = f"1 qid:1 1:{value} 2:3\n".encode()
    data = read_letor(io.BytesIO(text), keep_nonfinite=True)
    assert np.array_equal(data.features, np.float32([[np.nan, 3]]), equal_nan=True)
    (block,) = iter_letor(io.BytesIO(text), keep_nonfinite=True)
    assert_same(block, data)
    with pytest.raises(DataError, match="keep_nonfinite"):
        read_letor(io.BytesIO(text))
    with pytest.raises(DataError, match="is not a valid label"):
        read_letor(io.BytesIO(f"{value} qid:1 1:1".encode()), keep_nonfinite=True)


@pytest.mark.parametrize("value", ["NULL", "null", "Null"])
def test_null_is_missing(value: str) -> None:
    data = read_letor(io.BytesIO(f"1 qid:1 1:{value} 3:2\n".encode()))
    assert np.array_equal(data.features, np.float32([[np.nan, 0, 2]]), equal_nan=True)


def test_lenient_spellings() -> None:
    text = (
        b"\n   \t\r\n# a line of comment\n"
        b"  +1.50\tQID:7   0001:1 2:-.5 3:5. \t 4:1E+2 \r\n"
        b"-0 qid:7 1:0 #docid = d1 inc = 1 prob = 0.08\n"
        b"1e0 qid:7 1:0 # DocID=d2\n"
        b"2 qid:7 # docid =\n"
        b"3 qid:7 #no id\n"
        b"4 qid:7 #docid d3\n"
        b"5 qid:7 #docids = d4\n"
    )
    data = read_letor(io.BytesIO(text))
    assert data.query_ids.to_pylist() == ["7"]
    assert data.labels.tolist() == [1.5, -0.0, 1, 2, 3, 4, 5]
    assert data.features[0].tolist() == [1, -0.5, 5, 100]
    assert not data.features[1:].any()
    assert data.document_ids.to_pylist() == [None, "d1", "d2", None, None, None, None]


def test_indices_from_zero() -> None:
    text = b"1 qid:1 0:5 2:6\n"
    assert read_letor(io.BytesIO(text), zero_based=True).features.tolist() == [[5, 0, 6]]
    with pytest.raises(DataError, match="zero_based=True"):
        read_letor(io.BytesIO(text))


def test_more_features_on_request() -> None:
    text = b"1 qid:1 12000:1\n"
    assert len(read_letor(io.BytesIO(text), max_features=12_000).feature_names) == 12_000
    with pytest.raises(DataError, match=r"above 11999.*Raise max_features"):
        read_letor(io.BytesIO(text), max_features=11_999)


def test_a_matrix_that_would_not_fit_is_refused_before_it_is_made() -> None:
    text = b"0 qid:1\n" * 60_000 + b"1 qid:2 9999:1\n"
    with pytest.raises(DataError, match=r"has feature index .*larger than 2 GiB"):
        read_letor(io.BytesIO(text))


def test_rows_of_a_query_apart() -> None:
    text = b"1 qid:a 1:1\n2 qid:b 1:2\n3 qid:a 1:3\n"
    data = read_letor(io.BytesIO(text))
    assert data.query_ids.to_pylist() == ["a", "b"]
    assert data.labels.tolist() == [1, 3, 2]
    with pytest.raises(
        DataError, match=r"stream: the rows of query 'a' are not contiguous.*Sort the file"
    ):
        list(iter_letor(io.BytesIO(text)))


def test_ids_are_compared_whole() -> None:
    text = b"1 qid:a\n1 qid:ab\n1 qid:A\n1 qid:01\n1 qid:1\n1 qid:1.0\n1 qid:a#b\n"
    data = read_letor(io.BytesIO(text))
    assert data.query_ids.to_pylist() == ["a", "ab", "A", "01", "1", "1.0", "a#b"]


WITHOUT_QUERIES = b"1 1:0.5\n0 1:0.7 #docid = b\n\n2 2:1\n"


@pytest.mark.parametrize("group", [[2, 1], np.array([2, 1]), io.BytesIO(b"2\n1")])
def test_group_sizes(group: object) -> None:
    data = read_letor(io.BytesIO(WITHOUT_QUERIES), group=group)
    assert data.sizes.tolist() == [2, 1]
    assert data.query_ids.to_pylist() == ["0", "1"]
    assert data.document_ids.to_pylist() == [None, "b", None]


@pytest.mark.parametrize(
    ("sizes", "problem", "line"),
    [
        (b"2\n2\n", "group sizes sum to 4, there are 3 rows", None),
        (b"", "group sizes sum to 0, there are 3 rows", None),
        (b"2\n\n0\n1\n", "'0' is not a valid number of rows", 3),
        (b"2\n-1\n", "'-1' is not a valid number of rows", 2),
        (b"2 1\n", "'2 1' is not a valid number of rows", 1),
        (b"1.5\n", "'1.5' is not a valid number of rows", 1),
        (b"2\n1000000000000000\n", "'1000000000000000' is not a valid number of rows", 2),
        (b"2\n\xe9\n", "'\ufffd' is not a valid number of rows", 2),
        ("2\n\u0661\n".encode(), "is not a valid number of rows", 2),
        (b"2\n1\x00\n", "is not a valid number of rows", 2),
    ],
)
def test_wrong_group_sizes(sizes: bytes, problem: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "rank.txt"
    path.write_bytes(WITHOUT_QUERIES)
    beside = tmp_path / "rank.txt.query"
    beside.write_bytes(sizes)
    for group in (None, beside):
        with pytest.raises(DataError) as caught:
            read_letor(path, group=group)
        assert problem in caught.value.problem
        assert caught.value.line == line
        assert caught.value.path == str(path if line is None else beside)
        assert caught.value.hint


def test_group_sizes_for_lines_that_name_queries(tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(GOOD)
    (tmp_path / "train.txt.query").write_bytes(b"1\n")
    with pytest.raises(DataError, match=r"line 1: 'qid:1' is not .*move its \.query file away"):
        read_letor(path)


def test_group_sizes_packed() -> None:
    import gzip

    assert read_group_sizes(io.BytesIO(gzip.compress(b"\xef\xbb\xbf3\r\n 4 \r\n"))).tolist() == [
        3,
        4,
    ]


def test_blocks_have_the_features_seen_so_far(tmp_path: Path) -> None:
    # More than one chunk of 2 MiB, the widest line in the last.
    narrow = b"".join(b"0 qid:%d 1:1 #%s\n" % (query, b"x" * 1000) for query in range(4500))
    path = tmp_path / "train.txt"
    path.write_bytes(narrow + b"1 qid:last 3:1\n")
    blocks = list(iter_letor(path))
    assert len(blocks) > 2
    widths = [len(block.feature_names) for block in blocks]
    assert (widths[0], widths[-1]) == (1, 3)
    whole = read_letor(path)
    assert len(whole.feature_names) == 3
    same_width = [
        Dataset.from_arrays(
            np.pad(block.features, ((0, 0), (0, 3 - block.features.shape[1]))),
            labels=block.labels,
            qid=block.query_id_of_row(),
        )
        for block in blocks
    ]
    assert_same(concat_datasets(same_width), whole)
