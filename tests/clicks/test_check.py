"""Traps of logging are noticed, and logs that nothing can be learned from are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from podium.clicks import (
    SimulatedUser,
    check_log,
    import_clicks,
    simulate_clicks,
)
from podium.clicks.check import LogCheck
from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from tests.cli.run_podium import podium, succeed
from tests.clicks.records import event, query, write
from tests.data.shared_files import shared


def checked(tmp_path: Path, records: list[Any]) -> LogCheck:
    return check_log(import_clicks(write(tmp_path / "ubi.ndjson", records), tmp_path / "log"))


def kinds(result: LogCheck) -> dict[str, int]:
    return {finding.kind: finding.count for finding in result.findings}


PLAIN = [query("s", "tv", ["a", "b", "c"]), event("s", "click", "b", user_query="tv")]
TRAPS: dict[str, tuple[list[Any], int]] = {
    "older name of the list": ([query("t", "x", query_response_objects_ids=["a"])], 1),
    "ranks from 0": ([query("t", "x"), *(event("t", "impression", d, n, application="A")
                      for n, d in enumerate("ab"))], 1),
    "no object_id_field": ([{**event("s", "click", "a"), "event_attributes": {
        "object": {"object_id": "a"}}}], 1),
    "multiplied queries": ([query("s", "tv", [])], 1),
    "no query text": ([event("s", "click", "a")], 1),
    "lists without impressions": ([query("t", "x", ["a"], application="A"), query(
        "u", "x", application="A"), event("u", "impression", "a", 1, application="A")], 1),
    "clicks without a search": ([event("gone", "click", "a")], 1),
    "clicked, not shown": ([event("s", "click", "z")], 1),
    "bot": ([query("t", "x", ["a", "b"], user_agent="AhrefsBot")], 2),
    "reload": ([query("t", "tv", ["a", "b", "c"])], 3),
    "re-sorted by the user": ([query("t", "x", ["a", "b"]), event("t", "sort_by_price", "")], 2),
    "repeated in its search": ([query("t", "x", ["a", "b", "a"])], 1),
    "repeated actions": ([event("s", "click", "b", after=3)], 1),
    "late actions": ([event("s", "click", "c", after=9999)], 1),
    "before its search actions": ([event("s", "click", "c", after=-9999)], 1),
    "same rank twice": ([query("t", "x"), *(event("t", "impression", d, n, application="B")
                         for n, d in ((1, "a"), (2, "b"), (1, "c")))], 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", TRAPS)
def test_every_planted_trap_is_noticed(tmp_path: Path, kind: str) -> None:
    more, count = TRAPS[kind]
    assert kinds(checked(tmp_path, [*PLAIN, *more]))[kind] == count


def test_a_plain_log_has_none(tmp_path: Path) -> None:
    assert kinds(checked(tmp_path, PLAIN)) == {}


def test_applications_that_count_differently(tmp_path: Path) -> None:
    records = [
        event(name, "impression", document, base + n, user_query="tv", application=name)
        for name, base in (("A", 0), ("B", 1))
        for n, document in enumerate("ab")
    ]
    assert kinds(checked(tmp_path, records))["mixed ranks"] == 2


def test_the_two_parts_of_the_sample_get_different_answers(tmp_path: Path) -> None:
    path = shared("clicks/chorus-ubi/ubi_queries_events.ndjson.gz")
    for application, verdict, status in (
        ("Chorus", "assumptions", 0),
        ("esci_ubi_sample", "no", 1),
    ):
        folder = tmp_path / application
        succeed("clicks", "import", path, "-o", folder, "--application", application)
        done = podium("clicks", "check", folder, "--json")
        content = json.loads(done.stdout)
        assert (content["verdict"], done.returncode) == (verdict, status)
        expected = [list(range(1, 21))] if status == 0 else [[1], [2], [3], [4], [5]]
        assert content["components"] == expected
        assert b"Position bias" in podium("clicks", "check", folder).stdout


def judged(queries: int = 60, documents: int = 8) -> Dataset:
    random = np.random.default_rng(0)
    rows = queries * documents
    return Dataset.from_arrays(
        random.random((rows, 1)), random.choice(4, rows), group=[documents] * queries
    )


def test_a_fixed_order_cannot_be_learned_from_and_a_shuffled_one_can(tmp_path: Path) -> None:
    data = judged()
    fixed = simulate_clicks(data, tmp_path / "fixed", policy="1", searches=30, depth=5)
    result = check_log(fixed)
    assert (result.verdict, result.moved, result.condition) == ("no", 0, np.inf)
    moved = simulate_clicks(
        data, tmp_path / "moved", policy="1", searches=60, depth=5, shuffled=0.5
    )
    result = check_log(moved)
    assert (result.verdict, result.components) == ("learnable", ((1, 2, 3, 4, 5),))
    assert result.condition < 100
    assert (result.factors < 1.5).all()
    few = simulate_clicks(data, tmp_path / "few", policy="1", searches=3, depth=5, shuffled=0.3)
    assert check_log(few).verdict == "assumptions"


def test_swaps_are_harmonic_numbers(tmp_path: Path) -> None:
    rows: dict[str, list[Any]] = {
        name: [] for name in ("search_id", "query", "document_id", "rank", "clicked")
    }
    for number, first in enumerate("aab"):  # a is first twice, b once
        for rank, document in enumerate((first, "ab".replace(first, "")), 1):
            values = (f"s{number}", "q", document, rank, document == "a")
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    result = check_log(import_clicks(rows, tmp_path / "log"))
    both = 2 * 1 / (2 + 1) + 1 * 2 / (1 + 2)
    assert result.swaps.tolist() == pytest.approx([both, both])
    assert (result.pairs, result.moved, result.clicked_moved) == (2, 2, 1)


def test_separate_parts_of_ranks(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = []
    for search in range(400):
        top, low = random.permutation(["a", "b"]), random.permutation(["c", "d"])
        for rank, document in enumerate([*top, *low], 1):
            rows.append((f"s{search}", "q", document, rank, random.random() < 0.3))
    columns = dict(
        zip(
            ("search_id", "query", "document_id", "rank", "clicked"),
            zip(*rows, strict=True),
            strict=True,
        )
    )
    result = check_log(
        import_clicks(pa.table({k: list(v) for k, v in columns.items()}), tmp_path / "log")
    )
    assert (result.verdict, result.components) == ("no", ((1, 2), (3, 4)))
    assert "2 separate parts" in result.reasons[0]


@pytest.mark.parametrize("clicked", [0, 1])
def test_logs_of_clicks_alone_or_without_any_are_refused(tmp_path: Path, clicked: int) -> None:
    rows = {
        "search_id": ["s", "t", "u"], "query": ["q"] * 3, "document_id": ["a", "b", "a"],
        "rank": [1, 2, 3], "clicked": [clicked] * 3,
    }  # fmt: skip
    result = check_log(import_clicks(rows, tmp_path / "log"))
    assert result.verdict == "no"
    assert ("Log what was shown" in result.reasons[0]) == bool(clicked)


def test_a_log_of_later_pages_alone_needs_a_larger_depth(tmp_path: Path) -> None:
    rows = {
        "search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyyx"],
        "rank": [31, 32, 31, 32], "clicked": [True, False, True, True],
    }  # fmt: skip
    log = import_clicks(rows, tmp_path / "log")
    with pytest.raises(DataError, match="nothing was shown at ranks 1 to 20"):
        check_log(log)
    assert check_log(log, depth=32).moved == 2


def test_users_of_a_cascade_are_checked_too(tmp_path: Path) -> None:
    user = SimulatedUser("cascade")
    log = simulate_clicks(judged(), tmp_path / "log", user=user, searches=60, depth=4)
    assert check_log(log).verdict == "learnable"
    with pytest.raises(ArgumentError, match="depth is 1"):
        check_log(log, depth=1)
