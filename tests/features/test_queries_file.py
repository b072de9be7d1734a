"""Files of queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import DataError
from podium.features.queries_file import read_queries
from podium.features.search_query import SearchQuery


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    return path


def test_json_lines_have_columns(tmp_path):
    content = '{"_id": 7, "query": "a b", "place": "x", "age": 3, "new": true, "no": null}\n'
    (query,) = read_queries(written(tmp_path, "q.jsonl", content))
    assert query == SearchQuery("7", "a b", {"place": "x", "age": "3", "new": "true"})


def test_lines_have_an_id_a_tab_and_a_text(tmp_path):
    path = written(tmp_path, "q.tsv", "1\tred shoes\n\n2\tblue\tshoes\n")
    assert list(read_queries(path)) == [
        SearchQuery("1", "red shoes"),
        SearchQuery("2", "blue\tshoes"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.tsv", "\n", "q.tsv: has no query"),
        ("q.tsv", "1\ta\n1\tb\n", "q.tsv: has two queries '1'"),
        ("q.tsv", "1\ta\n\tb\n", "q.tsv, line 2: has an id of 0 characters"),
        ("q.tsv", "1\t" + "a" * 10_001, "q.tsv, line 1: has more than 10000 characters"),
        ("q.jsonl", '{"id": 1}\n', "q.jsonl, line 1: has no id or no text"),
        (
            "q.jsonl",
            '{"id": 1.5, "text": "a"}\n',
            "q.jsonl, line 1: has an id or a text that is not",
        ),
        ("q.jsonl", '{"id": 1, "text": "a", "b": []}\n', "q.jsonl, line 1: has a column 'b' that"),
        ("q.jsonl", '{"id": 1, "text": "\\ud800"}\n', "q.jsonl, line 1: is not valid Unicode"),
    ],
)
def test_malformed_queries_are_refused(tmp_path, name, content, message):
    with pytest.raises(DataError) as error:
        list(read_queries(written(tmp_path, name, content)))
    assert str(error.value).removeprefix(f"{tmp_path}/").startswith(message)
