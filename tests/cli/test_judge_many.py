"""``podium judge`` with a run, topics and documents, query after query."""

import json
from pathlib import Path

import pytest

from podium.data import read_qrels
from podium.judging import SessionFile
from tests.cli.run_podium import fail, podium
from tests.data.shared_files import shared


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    queries, documents = ["q1", "q/2", "q3"], ["d1", "d2", "d3"]
    Path("bm25.run").write_text(
        "".join(f"{query} Q0 {each} 0 {each[1:]} tag\n" for query in queries for each in documents)
    )
    Path("topics.tsv").write_text("".join(f"{query}\tabout {query}\n" for query in queries))
    Path("documents.tsv").write_text("".join(f"{each}\ttext of {each}\n" for each in documents))
    return tmp_path


POOL = ("--run", "bm25.run", "--topics", "topics.tsv", "--documents", "documents.tsv")


def judged(*arguments: object, keys: str) -> tuple[str, str]:
    stdin = "".join(f"{key}\n" for key in keys).encode()
    done = podium("judge", *arguments, "--assessor", "ann", stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def test_all_queries_one_after_the_other(folder: Path) -> None:
    """d3 has the highest score and is shown first; with k 1 two pairs are judged for each query."""
    first, note = judged("all/", *POOL, "--k", 1, keys="aaa")
    assert "about q1" in first
    assert "text of d3" in first
    assert "about q/2" in first
    assert "1 of 3 queries are done." in note
    assert len(list((folder / "all").glob("*.session"))) == 2
    # The same command goes on, and needs no pool for what has begun.
    second, note = judged("all/", *POOL, "--k", 1, "--export", "out.qrels", keys="aaaaaa")
    assert "about q1" not in second
    assert "3 of 3 queries are done." in note
    judgments = read_qrels(folder / "out.qrels")
    assert sorted(judgments.query_ids.to_pylist()) == ["q/2", "q1", "q3"]
    assert sorted(judgments.labels.tolist()) == [0] * 6 + [1] * 3
    table = [line.split("\t") for line in second.splitlines() if "\tdone" in line]
    assert sorted(row[0] for row in table) == ["q/2", "q1", "q3"]
    _, note = judged("all", keys="")
    assert "3 of 3 queries are done." in note


def test_depth_and_one_query(folder: Path) -> None:
    judged("one.session", *POOL, "--query", "q3", "--depth", 2, keys="q")
    assert SessionFile.read(folder / "one.session").items == ("d3", "d2")
    assert "was started with seed 0, not 1" in fail("judge", "one.session", "--seed", 1)
    assert "was started with budget 6, not 5" in fail("judge", "one.session", "--budget", 5)
    judged("one.session", "--seed", 0, "--budget", 6, keys="q")


def test_one_query_of_those_that_were_begun(folder: Path) -> None:
    judged("all/", *POOL, "--k", 1, keys="aaaaq")
    sessions = {path.name: path.read_bytes() for path in (folder / "all").glob("*.session")}
    shown, note = judged("all/", *POOL, "--k", 1, "--query", "q3", keys="a")
    assert ("about q3" in shown, "about q/2" in shown) == (True, False)
    assert "of 3 queries are done." in note
    for name, before in sessions.items():
        if name != "q3.session":
            assert (folder / "all" / name).read_bytes() == before
    shown, _ = judged("all", "--query", "q3", "--export", "all.qrels", keys="a")
    assert sorted(read_qrels(folder / "all.qrels").query_ids.to_pylist()) == ["q/2", "q1", "q3"]
    assert ("about q/2" in shown, "about q1" in shown) == (False, False)
    assert "there is no such session" in fail("judge", "all", "--query", "q7")
    judged("one.session", *POOL, "--query", "q3", keys="q")
    message = fail("judge", "one.session", *POOL, "--query", "q1")
    assert "is the session of query 'q3', not 'q1'" in message


def test_texts_as_json_lines(folder: Path) -> None:
    Path("topics.jsonl").write_text(json.dumps({"_id": "q1", "text": "red shoes"}) + "\n")
    lines = [json.dumps({"_id": "d1", "title": "Shoe", "text": "A shoe"}),
             json.dumps({"_id": "d2", "title": "Boot", "text": "A boot"})]  # fmt: skip
    Path("corpus.jsonl").write_text("\n".join(lines))
    pool = ("--run", "bm25.run", "--topics", "topics.jsonl", "--documents", "corpus.jsonl")
    shown, _ = judged("beir.session", *pool, keys="q")
    assert "red shoes" in shown
    assert "A boot" in shown
    assert SessionFile.read(folder / "beir.session").items == ("d2", "d1")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("new/",), "Start one with --from candidates.jsonl, or with --run"),
        (("new.session", *POOL), "has 3 queries"),
        (("new/", *POOL[:2]), "Give --topics and --documents too"),
        (("new/", *POOL[:4], "--documents", "topics.tsv"), "has none of the 3 documents"),
        (("new/", *POOL[:2], "--topics", "documents.tsv", *POOL[4:]), "none of the run's 3 quer"),
        (("new/", *POOL, "--query", "q9"), "has no query 'q9'"),
        (("new/", *POOL[:4], "--documents", "bm25.run"), "is not an id, a tab and a text"),
    ],
)
def test_mistakes_say_what_to_do(arguments: tuple[str, ...], message: str) -> None:
    assert message in fail("judge", *arguments)
    assert not Path("new").exists()
    assert not Path("new.session").exists()


def test_real_run_topics_and_passages(tmp_path: Path) -> None:
    pool = (
        *("--run", shared("trec/dl21-runs/p_bm25.run.gz")),
        *("--topics", shared("preferences/trec-dl21/questions.tsv")),
        *("--documents", shared("preferences/trec-dl21/passages.txt.gz")),
    )
    _, note = judged(f"{tmp_path}/dl21/", *pool, "--k", 3, keys="aq")
    assert note.startswith("0 of ")
    assert len(list((tmp_path / "dl21").glob("*.session"))) == 1
