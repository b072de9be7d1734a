"""Gold pairs and examples are read alike from JSON lines and from what spreadsheets write."""

from __future__ import annotations

import io

import pytest

from podium.errors import DataError
from podium.studio.judging.gold import GoldPair, read_gold
from podium.studio.judging.training import MOST, Example, read_examples
from podium.studio.store.enums import Mode

PAIRS = [GoldPair("red tent", "a", "b", 1), GoldPair("q2", "c", "d", 0)]


@pytest.mark.parametrize(
    "content",
    [
        b'{"query_id": "red tent", "left": "a", "right": "b", "outcome": "left"}\n\n'
        b'{"query_id": "q2", "left": "c", "right": "d", "outcome": "tie"}\n',
        b"query_id,left,right,outcome\nred tent,a,b,left\n\nq2,c,d,tie\n",
        b"\xef\xbb\xbfoutcome;left;right;query_id;;\r\n"
        b"left; a ;b;red tent;;\r\ntie;c;d;q2\r\n;;;\r\n",
        b"left\tright\toutcome\tquery_id\na\tb\tleft\tred tent\nc\td\ttie\tq2",
    ],
)
def test_tables_and_json_lines_are_the_same(content):
    assert read_gold(io.BytesIO(content)) == PAIRS


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"query_id,left,right,outcome\nq,a,b,left\nq,a,b,best\n", "line 3.*outcome is 'best'"),
        (b"query_id,left,right,outcome\nq,a,b,left,more\n", "line 2.*has 5 cells.*4 names"),
        (b"query_id,left,left,outcome\nq,a,b,left\n", "line 1.*the same name"),
        (b"query_id,left,right\nq,a,b\n", "line 2.*not a valid gold pair"),
        (b"query_id,left,right,outcome\nq,\xe9,b,left\n", "line 2.*UTF-8.*save it as CSV UTF-8"),
        (b'query_id,left,right,outcome\nq,"a,b,left\n', "not a valid table"),
        (b'query_id,"le"ft,right\nq,a,b\n', "line 1.*not a valid table"),
        (b'{"query_id": "q", "left": "a"\n', "line 1.*not JSON"),
        (b"[1, 2]\n[3, 4]\n", "line 2.*not a valid gold pair"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(content, problem):
    with pytest.raises(DataError, match=problem):
        read_gold(io.BytesIO(content))


def test_an_explanation_may_have_several_lines():
    table = b'query_id,document,grade,explanation\nq,a,good,"Two\n\nparagraphs, one comma."\n'
    (example,) = read_examples(io.BytesIO(table), Mode.GRADES)
    assert example == Example("q", ("a",), 2, "Two\n\nparagraphs, one comma.")


def test_no_more_is_read_than_a_project_takes():
    header, line = b"query_id,document,grade,explanation\n", b"q,a,good,x\n"
    assert len(read_examples(io.BytesIO(header + MOST * line), Mode.GRADES)) == MOST
    broken = b"not,a,valid,row\n"  # behind the last one that is looked at
    with pytest.raises(DataError, match=f"more than {MOST} examples"):
        read_examples(io.BytesIO(header + (MOST + 1) * line + broken), Mode.GRADES)
