"""JSONL that is wrong: each error names file, line and remedy."""

import io
import json
from pathlib import Path

import pytest

from podium.data import Candidate, CandidateList, read_jsonl, write_jsonl
from podium.data.candidates import candidate_judgments, candidate_rankings
from podium.errors import DataError

GOOD = '{"query_id": "q0", "query": "shoes", "candidates": [{"document_id": "d"}]}'


def line(**changes: object) -> str:
    """A good line with some keys changed, or taken out by a change to None."""
    content = {"query_id": "q", "query": "shoes", "candidates": [{"document_id": "d"}]} | changes
    return json.dumps({key: value for key, value in content.items() if value is not None})


def candidate(text: str) -> str:
    return '{"query_id": "q", "query": "", "candidates": [{"document_id": "d", ' + text + "}]}"


WRONG = {
    "no JSON": ("shoes", "is not JSON"),
    "cut short": (GOOD[:-3], "is not JSON"),
    "trailing garbage": (GOOD + " x", "is not JSON"),
    "two objects": (GOOD + GOOD, "is not JSON"),
    "single quotes": ("{'query_id': 'q'}", "is not JSON"),
    "NUL": ("\x00", "is not JSON"),
    "control character in a string": ('{"query_id": "a\x01"}', "is not JSON"),
    "list": ("[]", "is not a JSON object"),
    "number": ("7", "is not a JSON object"),
    "null": ("null", "is not a JSON object"),
    "no query_id": (line(query_id=None), "a query lacks 'query_id'"),
    "no query": (line(query=None), "a query lacks 'query'"),
    "no candidates": (line(candidates=None), "a query lacks 'candidates'"),
    "unknown key": (line(lang="en"), "a query has an unknown key 'lang'"),
    "key twice": ('{"query_id": "q", "query_id": "q"}', "duplicate key"),
    "numeric id": (line(query_id=7), "'query_id' is not a string"),
    "empty id": (line(query_id=""), "query_id is empty"),
    "numeric query": (line(query=7), "'query' is not a string"),
    "numeric description": (line(description=7), "'description' is not a string"),
    "candidates no list": (line(candidates={}), "candidates is not a list"),
    "candidate no object": (line(candidates=["d"]), "a candidate is not a JSON object"),
    "candidate without id": (line(candidates=[{}]), "a candidate lacks 'document_id'"),
    "candidate with empty id": (line(candidates=[{"document_id": ""}]), "document_id is empty"),
    "candidate with numeric id": (line(candidates=[{"document_id": 7}]), "'document_id' is not a"),
    "candidate twice": (line(candidates=[{"document_id": "d"}] * 2), "a document is listed twice"),
    "candidate with unknown key": (candidate('"lang": "en"'), "unknown key 'lang'"),
    "candidate with key twice": (candidate('"url": "a", "url": "b"'), "duplicate key"),
    "numeric title": (candidate('"title": 7'), "'title' is not a string"),
    "null text": (candidate('"text": null'), "'text' is not a string"),
    "score of letters": (candidate('"score": "7"'), "score is not a number"),
    "score of truth": (candidate('"score": true'), "score is not a number"),
    "score NaN": (candidate('"score": NaN'), "a number that is not valid JSON"),
    "label Infinity": (candidate('"label": -Infinity'), "a number that is not valid JSON"),
    "score too large": (candidate('"score": 1e999'), "too large"),
    "score of 400 digits": (candidate('"score": ' + "9" * 400), "score is not a number"),
    "score of 5000 digits": (candidate('"score": ' + "9" * 5000), "is not JSON"),
    "metadata no object": (candidate('"metadata": [1]'), "metadata is not an object"),
    "metadata null": (candidate('"metadata": null'), "metadata is not an object"),
    "metadata too large": (candidate('"metadata": {"x": 1e999}'), "too large"),
    "metadata too deep": (
        candidate('"metadata": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "nested too deeply",
    ),
    "lone surrogate": (candidate('"title": "\\ud800"'), "is not UTF-8 text"),
    "query is listed twice": (GOOD, "query 'q0' is listed twice"),
}


@pytest.mark.parametrize(("wrong", "problem"), WRONG.values(), ids=WRONG)
def test_wrong_lines(wrong: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    for end in ("", "\n", "\r\n" + line()):
        path.write_text(f"{GOOD}\n\n{wrong}{end}")
        for source, name in ((path, str(path)), (io.BytesIO(path.read_bytes()), "stream")):
            with pytest.raises(DataError) as caught:
                list(read_jsonl(source))
            assert problem in caught.value.problem
            assert (caught.value.path, caught.value.line) == (name, 3)
            assert caught.value.hint


@pytest.mark.parametrize("text", [b"caf\xe9", b"\xff\xfe", b"\xed\xa0\x80"])
def test_bytes_that_are_not_utf_8(text: bytes) -> None:
    good = GOOD.encode()
    bad = good.replace(b"q0", b"q1").replace(b"shoes", text)
    with pytest.raises(DataError, match="line 2: is not UTF-8 text"):
        list(read_jsonl(io.BytesIO(good + b"\n" + bad)))


def test_lenient_spellings() -> None:
    text = "\ufeff\n \t\n" + GOOD + "\r\n" + line(description="", query="\u2028 é")
    entries = list(read_jsonl(io.BytesIO(text.encode())))
    assert [entry.query for entry in entries] == ["shoes", "\u2028 é"]
    assert list(read_jsonl(io.BytesIO(b""))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        Candidate("d", score=float("nan")),
        Candidate("d", label=float("inf")),
        Candidate("d", title="\ud800"),
        Candidate("d", metadata={"x": object()}),
        Candidate("d", metadata={"x": {1, 2}}),
    ],
)
def test_what_cannot_be_written(wrong: Candidate, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="query 'q' cannot be written as JSON"):
        write_jsonl([CandidateList("q", "", (wrong,))], tmp_path / "out.jsonl")
    assert not list(tmp_path.iterdir())


def test_nested_metadata_is_written_as_deep_as_it_is_read() -> None:
    text = candidate('"metadata": {"x": ' + "[" * 600 + "]" * 600 + "}").encode()
    entries = list(read_jsonl(io.BytesIO(text)))
    write_jsonl(entries, out := io.BytesIO())
    assert list(read_jsonl(io.BytesIO(out.getvalue()))) == entries
    metadata: dict[str, object] = {}
    for _ in range(100_000):
        metadata = {"x": metadata}
    with pytest.raises(DataError, match="cannot be written as JSON"):
        write_jsonl([CandidateList("q", "", (Candidate("d", metadata=metadata),))], io.BytesIO())
    while metadata:  # taken apart by hand: freeing it at once would recurse as deep
        metadata = metadata["x"]  # type: ignore[assignment]


def test_labels_and_scores_of_candidates() -> None:
    lists = [
        CandidateList("q", "", (Candidate("a", label=2, score=0.5), Candidate("b", score=-1))),
        CandidateList("p", "", (Candidate("a", label=0),)),
        CandidateList("r", "", ()),
    ]
    judged, ranked = candidate_judgments(lists), candidate_rankings(lists, name="old")
    assert judged.query_ids.to_pylist() == ["q", "p"]
    assert judged.labels.tolist() == [2, 0]
    assert ranked.document_ids.to_pylist() == ["a", "b"]
    assert ranked.scores.tolist() == [0.5, -1]
    assert ranked.name == "old"
    for make, what in ((candidate_judgments, "label"), (candidate_rankings, "score")):
        with pytest.raises(DataError, match=f"no candidate has a {what}"):
            make([CandidateList("q", "", (Candidate("a"),))])
