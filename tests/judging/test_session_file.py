"""Sessions on disk."""

import errno
import json
import math
import multiprocessing
import os
import re
import resource
import signal
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli.judge_screen import Stopwatch
from podium.errors import DataError
from podium.judging import Grade, Mark, Outcome, Overlap, Session, SessionFile, SideBySide, Verdict
from podium.judging.entries import Undo
from podium.judging.session_file import _parse
from tests.judging.histories import random_entry, random_session, state


def written(path, seed):
    random = Random(seed)
    with SessionFile.create(path, random_session(random), {"query": "größe 42"}) as journal:
        for _ in range(12):
            journal.add(random_entry(random, journal.session))
        journal.undo("ann", at=3.0)
        return journal.session


@pytest.mark.parametrize("seed", range(8))
def test_a_session_comes_back(tmp_path, seed):
    session = written(tmp_path / "s.jsonl", seed)
    assert state(SessionFile.read(tmp_path / "s.jsonl")) == state(session)
    with SessionFile.open(tmp_path / "s.jsonl") as journal:
        assert journal.about == {"query": "größe 42"}
        assert journal.session.log == session.log
        assert journal.session.overlap == session.overlap


def test_a_crash_at_any_byte_loses_no_entry_that_was_taken(tmp_path):
    path, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    session = written(path, 1)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    ends = [sum(map(len, lines[: count + 1])) for count in range(len(lines))]
    for size in range(ends[0], len(content) + 1):
        cut.write_bytes(content[:size])
        whole = sum(end <= size for end in ends) - 1  # entries; the first line is the header
        assert SessionFile.read(cut).log == session.log[:whole]
        if size % 20 == 0 or whole == len(session.log):
            with SessionFile.open(cut) as journal:
                journal.add(Mark(session.items[0]))
            assert SessionFile.read(cut).log == (*session.log[:whole], Mark(session.items[0]))


def test_a_session_with_a_log_is_written_whole(tmp_path):
    session = Session(["a", "b"], 1, overlap=Overlap(1.0, 2), log=[Verdict("a", "b", Outcome.TIE)])
    SessionFile.create(tmp_path / "s.jsonl", session).close()
    again = SessionFile.read(tmp_path / "s.jsonl")
    assert (again.log, again.overlap) == (session.log, session.overlap)


def _try_to_open(path, answers):
    try:
        SessionFile.open(path).close()
        answers.put("opened")
    except DataError as error:
        answers.put(str(error))


def test_only_one_process_writes(tmp_path):
    path = tmp_path / "s.jsonl"
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    with SessionFile.create(path, Session(["a", "b"])):
        other = spawn.Process(target=_try_to_open, args=(path, answers))
        other.start()
        assert "someone is judging this session" in answers.get(timeout=60)
        other.join()
    _try_to_open(path, answers)
    assert answers.get(timeout=60) == "opened"


def test_nothing_is_overwritten(tmp_path):
    SessionFile.create(tmp_path / "s.jsonl", Session(["a", "b"])).close()
    with pytest.raises(DataError, match="File exists"):
        SessionFile.create(tmp_path / "s.jsonl", Session(["a", "b"]))


HEADER = {"podium": "session", "version": 1, "items": ["a", "b"]}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "is not a session file"),
        (["hello"], "line 1: is not JSON"),
        (["[]"], "line 1: is not a JSON object"),
        ([{"items": ["a"]}], "is not a session file"),
        ([HEADER | {"version": 9}], "has version 9"),
        ([HEADER | {"k": 0}], "line 1: k is 0"),
        ([{"podium": "session", "version": 1}], "items are missing"),
        (["[" * 100_000], "line 1: is not JSON"),
        ([HEADER | {"items": "ab"}], "line 1: 'items' is 'ab'. Give a value of type list"),
        ([HEADER | {"items": ["a", 1]}], "an item is not a string"),
        ([HEADER | {"k": 2.5}], "'k' is 2.5. Give a value of type int"),
        ([HEADER | {"k": True}], "'k' is True"),
        ([HEADER | {"random_state": -1}], "line 1: seed is -1"),
        ([HEADER | {"budget": "all"}], "'budget' is 'all'"),
        ([HEADER | {"overlap": {"part": 1}}], "Give share, assessors, random_state"),
        (
            [HEADER | {"overlap": {"share": 2, "assessors": 2, "random_state": 0}}],
            "share of pairs is 2",
        ),
        ([HEADER, '{"kind": "bad", "item": "a", "seconds": NaN}'], "line 2: 'seconds' of a bad"),
        ([HEADER, {"kind": "bad", "item": "a"}, {"kind": "bad", "item": "x"}], "line 3: 'x' is no"),
        ([HEADER, {"kind": "vote"}], "line 2: 'vote' is not a valid kind"),
    ],
)
def test_what_is_no_session_is_refused_with_its_line(tmp_path, lines, problem):
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (tmp_path / "s.jsonl").write_text("".join(f"{text}\n" for text in texts))
    with pytest.raises(DataError, match=problem):
        SessionFile.open(tmp_path / "s.jsonl")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values),
    max_leaves=4,
)
LINES = (
    HEADER | {"k": 1, "algorithm": "careful", "random_state": 0, "ordered": True, "budget": 3},
    {"kind": "verdict", "left": "a", "right": "b", "outcome": 1, "assessor": "ann", "at": 1.5},
    {"kind": "grade", "item": "b", "grade": 2},
    {"kind": "undo", "entry": 0, "seconds": 2.0},
)


@given(st.integers(0, len(LINES) - 1), st.integers(0, 9), JSON)
def test_a_line_that_says_anything_is_read_or_refused(number, key, value):
    lines = [dict(line) for line in LINES]
    name = list(lines[number])[key % len(lines[number])]
    lines[number][name] = value
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with suppress(DataError):
        session, _ = _parse(content, "session.jsonl")
        assert session.result().top


def test_a_session_with_the_largest_seed_is_read():
    lines = [dict(line) for line in LINES]
    lines[0]["random_state"] = 2**63 - 1
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    session, _ = _parse(content, "session.jsonl")
    assert session.random_state == 2**63 - 1
    assert len(session.result().top) == session.k


@given(st.binary(max_size=40), st.integers(0, 400), st.integers(0, 20))
def test_bytes_that_are_anything_are_read_or_refused(news, place, dropped):
    content = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    content = content[:place] + news + content[place + dropped :]
    with suppress(DataError):
        session, _ = _parse(content, "session.jsonl")
        assert len(session.log) <= len(LINES)


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["a", "b", "", "\ud800", b"a", [1], 10**400, Outcome.LEFT])
    | st.sampled_from([np.int64(1), np.float64(2.5), np.float32(2.5), np.bool_(True), np.str_("a")])
)
FIELDS = {
    Verdict: ("left", "right", "outcome"),
    Mark: ("item",),
    Grade: ("item", "grade"),
    SideBySide: ("left", "right", "choice"),
    Undo: ("entry",),
}
GOOD = {
    "left": "a",
    "right": "b",
    "item": "a",
    "outcome": Outcome.TIE,
    "grade": 2,
    "choice": 1,
    "entry": 0,
    "assessor": "ann",
    "at": 5.0,
    "seconds": 2.5,
}


@given(
    st.sampled_from(list(FIELDS)),
    st.dictionaries(st.sampled_from(list(GOOD)), ANYTHING, max_size=2),
)
def test_whatever_is_added_can_be_read_and_what_is_refused_leaves_no_trace(kind, values):
    names = (*FIELDS[kind], "assessor", "at", "seconds")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        with SessionFile.create(path, Session(["a", "b"])) as journal:
            journal.add(Mark("b"))
            try:
                entry = kind(**{name: values.get(name, GOOD[name]) for name in names})
                journal.add(entry)
                expected = (Mark("b"), entry)
            except DataError:
                expected = (Mark("b"),)
            assert journal.session.log == expected
            assert SessionFile.read(path).log == expected
            journal.add(Mark("a"))
        assert SessionFile.read(path).log == (*expected, Mark("a"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("seconds", math.nan, "'seconds' of a bad is nan"),
        ("seconds", -1.0, "'seconds' of a bad is -1.0"),
        ("at", math.inf, "'at' of a bad is inf"),
        ("at", 1e12, "'at' of a bad is 1000000000000.0. Give seconds"),
        ("assessor", 5, "'assessor' of a bad is 5. Give a value of type str"),
        ("at", True, "'at' of a bad is True. Give a value of type float"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path, name, value, problem):
    with SessionFile.create(tmp_path / "s.jsonl", Session(["a", "b"])) as journal:
        before = journal.path.read_bytes()
        with pytest.raises(DataError, match=re.escape(problem)):
            journal.add(Mark("a", **{name: value}))
        assert journal.path.read_bytes() == before
        assert journal.session.log == ()
    with pytest.raises(DataError, match=re.escape(problem)):
        Session(["a", "b"], log=[Mark("a", **{name: value})])


def test_what_is_no_entry_is_refused():
    with pytest.raises(DataError, match="'a' is not an entry"):
        Session(["a", "b"]).add("a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "about", "problem"),
    [
        (lambda: Session(["a", 5]), {}, "an item is not a string"),
        (lambda: Session(["a", "b"], budget=2.5), {}, "'budget' is 2.5"),  # type: ignore[arg-type]
        (lambda: Session(["a", "b"], ordered=1), {}, "'ordered' is 1"),  # type: ignore[arg-type]
        (lambda: Session(["a", "b"]), {"k": "ten"}, "'k' is a reserved key of a session"),
    ],
)
def test_a_session_that_could_not_be_read_again_makes_no_file(tmp_path, make, about, problem):
    with pytest.raises(DataError, match=problem):
        SessionFile.create(tmp_path / "s.jsonl", make(), about)
    assert list(tmp_path.iterdir()) == []


def test_a_new_session_is_on_the_disk_and_so_is_its_name(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync

    def noted(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.chdir(tmp_path)
    SessionFile.create("s.jsonl", Session(["a", "b"])).close()
    assert synced == [tmp_path / "s.jsonl", tmp_path]


def test_a_session_that_cannot_be_written_leaves_no_file(tmp_path, monkeypatch):
    def fail(_descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DataError, match=r"cannot be written \(Input/output error\)"):
        SessionFile.create(tmp_path / "s.jsonl", Session(["a", "b"]))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_ends_the_journal_and_loses_no_more_than_an_entry(tmp_path):
    path = tmp_path / "s.jsonl"
    journal = SessionFile.create(path, Session(["a", "b", "c"]))
    journal.add(Mark("a"))
    size = path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, before[1]))  # half a line fits
        with pytest.raises(DataError, match=r"cannot be written .*the last entry is lost"):
            journal.add(Mark("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.stat().st_size > size
    with pytest.raises(DataError, match="is closed"):
        journal.add(Mark("c"))
    with SessionFile.open(path) as again:
        assert again.session.log == (Mark("a"),)
        again.add(Mark("c"))
    assert SessionFile.read(path).log == (Mark("a"), Mark("c"))


def test_a_missing_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.jsonl: cannot be opened"):
        SessionFile.read(tmp_path / "nowhere.jsonl")


def test_the_stopwatch_counts_no_pause():
    now = 0.0
    watch = Stopwatch(lambda: now)
    now = 3.0
    watch.pause()
    watch.pause()
    assert not watch.running
    now = 100.0
    watch.resume()
    watch.resume()
    assert watch.running
    now = 102.5
    assert watch.lap() == 3.0 + 2.5
    now = 103.0
    watch.pause()
    now = 200.0
    assert watch.lap() == 0.5  # of a stopped watch; the next lap starts
    now = 201.0
    assert watch.lap() == 1.0
