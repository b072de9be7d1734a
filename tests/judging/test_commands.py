"""``podium judge`` and ``podium simulate``, with keys from a pipe and from a real terminal."""

import json
import math
import os
import pty
import select
import time
from typing import NamedTuple, get_args
from xml.etree import ElementTree

import pytest

from podium.cli.simulate import HabitName
from podium.data import read_qrels
from podium.judging import HABITS, Mark, Outcome, Session, SessionFile, Verdict
from podium.judging.algorithms import ALGORITHMS, CAREFUL
from podium.judging.entries import Undo
from tests.cli.run_podium import PODIUM, podium

CANDIDATES = {
    "query_id": "q1",
    "query": "red shoes",
    "description": "to buy",
    "candidates": [
        {"document_id": f"d{place}", "title": f"Shoe {place}", "text": f"about shoe {place}\nmore"}
        for place in range(5)
    ],
}


class Printed(NamedTuple):
    """How a command ended, and its words."""

    returncode: int
    stdout: str
    stderr: str


def command(verb, *arguments):
    return [str(PODIUM), verb, *map(str, arguments)]


def run(verb, *arguments, keys=()):
    done = podium(verb, *arguments, stdin="".join(f"{key}\n" for key in keys).encode())
    return Printed(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def candidates(tmp_path):
    path = tmp_path / "candidates.jsonl"
    path.write_text(json.dumps(CANDIDATES))
    return path


def test_a_query_is_judged_in_two_sittings_and_exported(tmp_path, candidates):
    session, labels = tmp_path / "s.jsonl", tmp_path / "labels.qrels"
    first = run(
        "judge", session, "--from", candidates, "--k", 2, "--assessor", "ann", keys="aubx12=q"
    )
    assert first.returncode == 0, first.stderr
    log = SessionFile.read(session).log
    kinds = [type(entry) for entry in log]
    assert kinds == [Verdict, Undo, Verdict, Mark, Mark, Verdict]
    assert [log[index].outcome for index in (0, 2, 5)] == [
        Outcome.LEFT,
        Outcome.RIGHT,
        Outcome.TIE,
    ]
    assert {entry.assessor for entry in log} == {"ann"}
    assert "so far" in first.stdout
    assert "red shoes  to buy" in first.stdout
    assert "about shoe" in first.stdout

    again = run("judge", session, "--export", labels, "--assessor", "bob", keys="a" * 20)
    assert again.returncode == 0, again.stderr
    judged = SessionFile.read(session)
    assert judged.done
    assert judged.log[: len(log)] == log
    assert (
        f"{len([e for e in judged.log if not isinstance(e, Undo)]) - 1} judgments" in again.stdout
    )
    judgments = read_qrels(labels)
    written = dict(zip(judgments.document_ids.to_pylist(), judgments.labels, strict=True))
    top = judged.result().top
    assert {item: label for item, label in written.items() if label} == dict(
        zip(top, [2.0, 1.0], strict=False)
    )


def test_nothing_judged_is_not_exported(tmp_path, candidates):
    scored = json.loads(json.dumps(CANDIDATES))
    for number, candidate in enumerate(scored["candidates"]):
        candidate["score"] = float(number)
    candidates.write_text(json.dumps(scored))
    session, labels = tmp_path / "s.jsonl", tmp_path / "labels.qrels"
    for arguments, keys in (("--from", candidates), "q"), ((), "auq"):  # nothing, or taken back
        done = run("judge", session, *arguments, "--export", labels, keys=keys)
        assert done.returncode == 2
        assert "nothing has been judged yet" in done.stderr
        assert not labels.exists()
    assert run("judge", session, "--export", labels, keys="aq").returncode == 0
    assert labels.exists()


def test_scores_make_a_prior_ranking(tmp_path, candidates):
    scored = json.loads(json.dumps(CANDIDATES))
    for number, candidate in enumerate(scored["candidates"]):
        candidate["score"] = float(number)
    candidates.write_text(json.dumps(scored))
    run("judge", tmp_path / "s.jsonl", "--from", candidates, keys="q")
    session = SessionFile.read(tmp_path / "s.jsonl")
    assert session.ordered
    assert session.items == ("d4", "d3", "d2", "d1", "d0")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "no such session"),
        (["--from", "CANDIDATES", "--query", "q9"], "no query 'q9'"),
    ],
)
def test_mistakes_are_reported(tmp_path, candidates, arguments, problem):
    given = [candidates if argument == "CANDIDATES" else argument for argument in arguments]
    done = run("judge", tmp_path / "s.jsonl", *given)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not (tmp_path / "s.jsonl").exists()


def test_what_a_session_was_started_with_stays(tmp_path, candidates):
    session = tmp_path / "s.jsonl"
    assert run("judge", session, "--from", candidates, "--k", 2, keys="q").returncode == 0
    done = run("judge", session, "--k", 3, keys="q")
    assert done.returncode == 2
    assert "was started with k 2, not 3" in " ".join(done.stderr.split())
    assert run("judge", session, "--k", 2, keys="q").returncode == 0


def test_several_queries_need_a_choice(tmp_path, candidates):
    other = CANDIDATES | {"query_id": "q2"}
    candidates.write_text(f"{json.dumps(CANDIDATES)}\n{json.dumps(other)}\n")
    done = run("judge", tmp_path / "s.jsonl", "--from", candidates)
    assert "has 2 queries" in done.stderr
    done = run("judge", tmp_path / "s.jsonl", "--from", candidates, "--query", "q2", keys="q")
    assert done.returncode == 0


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, arguments):
        self.process, self.handle = pty.fork()
        if self.process == 0:
            os.environ |= {"COLUMNS": "90", "LINES": "24", "TERM": "xterm"}
            os.execv(arguments[0], arguments)
        self.seen = ""

    def wait_for(self, text):
        """Read until some text is there; what comes before it is forgotten."""
        end = time.monotonic() + 60
        while text not in self.seen:
            ready, _, _ = select.select([self.handle], [], [], 1)
            assert time.monotonic() < end, self.seen[-2000:]
            if ready:
                try:
                    self.seen += os.read(self.handle, 65536).decode(errors="replace")
                except OSError:  # the command has ended
                    assert text in self.seen, self.seen[-2000:]
        self.seen = self.seen.split(text, 1)[1]

    def press(self, keys):
        os.write(self.handle, keys.encode())

    def close(self):
        _, status = os.waitpid(self.process, 0)
        os.close(self.handle)
        return os.waitstatus_to_exitcode(status)


def test_arrows_pages_and_pauses_in_a_terminal(tmp_path, candidates):
    long = json.loads(json.dumps(CANDIDATES))
    for candidate in long["candidates"]:
        candidate["text"] = "\n".join(f"line {number}" for number in range(60))
    candidates.write_text(json.dumps(long))
    path = tmp_path / "s.jsonl"
    launched = time.monotonic()
    terminal = Terminal(command("judge", path, "--from", candidates, "--assessor", "ann"))
    terminal.wait_for("0 judged")
    terminal.wait_for("quit")
    terminal.press(" ")
    terminal.wait_for("line 20")
    terminal.wait_for("quit")
    terminal.press("p")
    terminal.wait_for("Paused")
    before = time.monotonic() - launched
    time.sleep(before + 2)  # longer than all that could count
    resumed = time.monotonic()
    terminal.press("x")
    terminal.wait_for("quit")
    terminal.press("\x1b[D")
    terminal.wait_for("1 judged")
    after = time.monotonic() - resumed
    terminal.wait_for("quit")
    time.sleep(0.2)
    terminal.press("\x1b[C")
    terminal.wait_for("2 judged")
    terminal.wait_for("quit")
    time.sleep(0.2)
    terminal.press("\x1b[B")
    terminal.wait_for("3 judged")
    terminal.wait_for("quit")
    terminal.press("q")
    terminal.wait_for("so far")
    assert terminal.close() == 0
    log = SessionFile.read(path).log
    assert [entry.outcome for entry in log] == [Outcome.LEFT, Outcome.RIGHT, Outcome.TIE]
    assert log[0].seconds <= before + after
    assert all(entry.seconds >= 0.2 for entry in log[1:])


def test_simulate_plans_a_project(tmp_path):
    plot = tmp_path / "plan.svg"
    done = run("simulate", "--queries", 500, "--items", 20, "--k", 3, "--runs", 10, "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert "500 queries, the top 3 of 20 documents" in done.stdout
    for name in [*ALGORITHMS, "five grades"]:
        assert name in done.stdout
    chart = ElementTree.fromstring(plot.read_text())
    assert {"adaptive", "five grades"} <= {element.text for element in chart.iter()}


def test_simulate_as_json():
    done = run(
        "simulate", "--queries", 50, "--items", 20, "--k", 3, "--runs", 10, "--json",
        "--judges", "perfect", "--overlap", 0.5, "--assessors", 3, "--hours-each", 0.5,
    )  # fmt: skip
    works = {one["algorithm"]: one for one in json.loads(done.stdout)}
    work = works["adaptive"]
    assert work["judgments"] == pytest.approx(50 * work["judgments_per_query"]["mean"])
    assert work["hours"] == pytest.approx(work["judgments"] * 5.51 / 3600)
    assert work["quality"] == 1
    assert works["five grades"]["judgments"] == 50 * 20 * (1 + 0.5 * 2)
    assert works["five grades"]["hours"] == pytest.approx(50 * 20 * 2 * 13.87 / 3600)
    assert work["people"] == math.ceil(work["hours"] / 0.5)
    low, high = work["hours_90_percent"]
    assert low < work["hours"] < high


def test_simulate_refuses_what_it_does_not_know():
    done = run("simulate", "--judges", "dogs")
    assert done.returncode == 2
    assert "dogs" in done.stderr


def test_the_names_on_the_command_line_are_those_of_the_package():
    assert set(get_args(HabitName)) == set(HABITS)
    help_text = " ".join(run("judge", "--help").stdout.split())
    assert all(name in help_text for name in (*ALGORITHMS, CAREFUL))


def test_a_session_file_written_by_anyone_is_shown_without_obeying_it(tmp_path):
    """Escape codes, markup, values of the wrong type: only text is kept."""
    path = tmp_path / "s.jsonl"
    evil = "\x1b]0;owned\x07\x1b[2J[red]tab\there\u202e"
    header = {
        "podium": "session",
        "version": 1,
        "items": ["\x1b[31md0", "d1", "d2"],
        "k": 1,
        "query": evil,
        "description": ["no", "text"],
        "texts": {"\x1b[31md0": {"title": 7, "text": evil}, "d1": {"title": evil}, "d2": "text"},
    }
    path.write_text(json.dumps(header) + "\n")
    done = run("judge", path, keys="aa")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "[red]tab" in done.stdout
    assert "The top 1" in done.stdout


def test_html_is_shown_as_its_words(tmp_path, candidates):
    html = "<title>no</title><p>one <b>two</b><script>alert(1)</script></p><ul><li>three"
    listed = {"document_id": "d", "html": html}, {"document_id": "e", "text": "plain"}
    candidates.write_text(json.dumps(CANDIDATES | {"candidates": listed}))
    done = run("judge", tmp_path / "s.jsonl", "--from", candidates, keys="q")
    assert {"one two", "three"} <= {
        part.strip() for part in done.stdout.replace("\n", "│").split("│")
    }
    assert "alert" not in done.stdout
    assert "<" not in done.stdout


def test_who_sticks_to_verdicts_that_contradict_each_other_is_asked_once_more(tmp_path):
    path = tmp_path / "s.jsonl"
    loop = [Verdict(*pair, Outcome.LEFT, "ann") for pair in ("ab", "bc", "ca")]  # type: ignore[call-arg]
    SessionFile.create(path, Session(["a", "b", "c"], 3, log=loop)).close()
    left, _ = SessionFile.read(path).contradictions()[0].ask_again
    before = next(entry for entry in loop if {entry.left, entry.right} == {left, _})
    same = "a" if before.left == left else "b"
    done = run("judge", path, "--assessor", "ann", keys=[same] * 9)
    assert "3 verdicts form a cycle" in done.stdout
    assert len(SessionFile.read(path).log) == 4
