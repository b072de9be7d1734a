"""Interleaved searches and A/B tests in tables: who wins, and what became of every row."""

from __future__ import annotations

import gzip
import math
from datetime import UTC, datetime, timedelta
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from podium.clicks import import_clicks
from podium.errors import ArgumentError, DataError
from podium.online import compare_groups, compare_interleaved, require_online
from podium.online.comparison import query_outcomes
from podium.online.report import facts, online_document
from podium.online.sequence import ClientSums, difference, preference
from tests.data.shared_files import shared

BEGIN = datetime(2026, 5, 4, tzinfo=UTC)


def published() -> pa.Table:
    """The clicks of Wikimedia's example, with a row per click, or one without for no click."""
    with gzip.open(shared("clicks/interleaved/a-pref.csv.gz")) as file:
        rows = pa.csv.read_csv(file).to_pydict()
    table: dict[str, list[Any]] = {"search_id": [], "team": [], "clicked": []}
    for search, event, team in zip(
        rows["search_id"], rows["event"], rows["ranking_function"], strict=True
    ):
        if event in ("serp", "click"):
            table["search_id"].append(search)
            table["team"].append(team if event == "click" else "A")
            table["clicked"].append(event == "click")
    return pa.table(table)


def test_the_published_example() -> None:
    # B is the new ranking: A's preference is the negative of what is reported. 754 searches prefer
    # A, 81 prefer B and 71 are tied: (754 - 81) / 906.
    report = compare_interleaved(published(), pair=("B", "A"))
    counts = report.counts
    assert (counts["new preferred"], counts["old preferred"], counts["tied"]) == (754, 81, 71)
    value = report.first.difference
    assert value.searches == 906
    assert round(100 * value.value, 1) == 74.3
    assert value.low < 0.700
    assert value.high > 0.779
    assert report.verdict == "A is ahead of B (preference, 906 searches)."
    other = compare_interleaved(published())
    assert (other.old, other.new) == ("A", "B")
    assert other.first.difference.value == -value.value


def interleaved(searches: int = 600) -> dict[str, list[Any]]:
    """Three documents per search; the first is of neither, the winner is clicked."""
    random = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("search_id", "query", "document_id", "rank", "clicked", "team",
                              "credit", "policy", "client", "time", "country")
    }  # fmt: skip
    for search in range(searches):
        winner = random.choice(
            ["new", "old", "none", "both", "neither"], p=[0.4, 0.2, 0.2, 0.1, 0.1]
        )
        mine = search % 10 != 9
        for rank, (team, credit) in enumerate((("", 0.0), ("new", 1.0), ("old", -1.0)), 1):
            clicked = winner in (team, "both") if rank > 1 else winner == "neither"
            for name, value in (
                ("search_id", f"s{search}"), ("query", f"q{search % 7}"),
                ("document_id", f"d{rank}"), ("rank", rank), ("clicked", clicked),
                ("team", team or None), ("credit", credit if search % 20 else None),
                ("policy", "team-draft-2" if mine else "team-draft-1"),
                ("client", f"c{search % 90}"),
                ("time", BEGIN + timedelta(hours=search) - timedelta(days=0 if mine else 90)),
                ("country", "de" if search % 3 else "fr"),
            ):  # fmt: skip
                rows[name].append(value)
    return rows


def expected_sums(rows: dict[str, list[Any]], country: str | None = None) -> tuple[Any, Any]:
    totals: dict[str, list[Any]] = {}
    fates: dict[str, int] = {}
    for search in dict.fromkeys(rows["search_id"]):
        at = [n for n, each in enumerate(rows["search_id"]) if each == search]
        clicked = [n for n in at if rows["clicked"][n]]
        values = [rows["credit"][n] for n in clicked]
        if rows["credit"][at[0]] is None:
            fate = "not interleaved"
        elif rows["policy"][at[0]] != "team-draft-2":
            fate = "other experiment"
        elif not clicked:
            fate = "no action"
        elif not any(values):
            fate = "action on what both would show"
        else:
            total = sum(values)
            fate = {1: "new preferred", -1: "old preferred", 0: "tied"}[int(np.sign(total))]
            if country in (None, rows["country"][at[0]]):
                totals.setdefault(rows["client"][at[0]], []).append(np.sign(total))
        fates[fate] = fates.get(fate, 0) + 1
    n = np.array([len(each) for each in totals.values()], float)
    x = np.array([sum(each) for each in totals.values()], float)
    single = sum(value**2 for each in totals.values() for value in each)
    return ClientSums(
        len(n), n.sum(), x.sum(), (n * n).sum(), (n * x).sum(), (x * x).sum(), single,
        *((x ** (4 - k) * n**k).sum() for k in range(5)),
    ), fates  # fmt: skip


def test_searches_are_summed_by_client_and_nothing_is_lost() -> None:
    rows = interleaved()
    report = compare_interleaved(rows, slices="country")
    sums, fates = expected_sums(rows)
    assert report.experiment == "team-draft-2"  # the latest
    assert dict(report.counts) == {"read": 600, **fates}
    assert (report.old, report.new, report.by_client) == ("old", "new", True)
    assert report.first.sums[1] == sums
    assert report.first.difference == preference(sums)
    slices = {each.slice_name: each for each in report.results[1:]}
    assert set(slices) == {"de", "fr"}
    for name, each in slices.items():  # two slices share the level
        assert each.difference == preference(expected_sums(rows, name)[0], level=0.975)
    assert report.course[-1].difference == report.first.difference
    assert len(report.course) > 40
    assert report.novelty is not None
    assert report.novelty.searches == sums.size
    first = compare_interleaved(rows, experiment="team-draft-1")
    assert (
        first.first.difference.searches + sums.size
        == sum(count for name, count in fates.items() if "preferred" in name or name == "tied")
        + first.first.difference.searches
    )


def test_a_log_of_clicks_gives_the_same_as_its_table(tmp_path: Path) -> None:
    rows = interleaved(300)
    rows["credit"] = [0.0 if value is None else value for value in rows["credit"]]
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(rows), path)
    report = compare_interleaved(path)
    assert report.first == compare_interleaved(pa.table(rows)).first
    log = import_clicks(path, tmp_path / "log")
    assert compare_interleaved(log).first.difference.value == report.first.difference.value
    assert compare_interleaved(tmp_path / "log").counts["read"] == 300


def groups(clients: int = 400) -> dict[str, list[Any]]:
    random = np.random.default_rng(1)
    rows: dict[str, list[Any]] = {
        name: [] for name in ("client", "variant", "revenue", "clicked", "time")
    }
    for client in range(clients):
        taste = random.gamma(4.0)
        for search in range(int(random.integers(1, 6)) + 2):
            late = search >= 2
            gain = 1.0 if client % 2 and late else 0.0
            for name, value in (
                ("client", f"c{client}"), ("variant", "b" if client % 2 else "a"),
                ("revenue", taste + gain + random.normal()), ("clicked", random.random() < 0.4),
                ("time", BEGIN + timedelta(days=-5 + 7 * search)),
            ):  # fmt: skip
                rows[name].append(value)
    return rows


def test_groups_are_compared_over_clients_and_the_past_helps() -> None:
    rows = groups()
    since = BEGIN + timedelta(days=9)
    late = [time >= since for time in rows["time"]]
    plain = compare_groups(
        {name: list(compress(values, late)) for name, values in rows.items()},
        assignment="variant", metrics=["revenue"],
    )  # fmt: skip
    report = compare_groups(rows, assignment="variant", metrics=["revenue", "clicked"], since=since)
    assert report.counts["read"] == len(rows["client"])
    assert report.counts["before the comparison"] == 2 * 400
    assert report.counts["compared"] == len(rows["client"]) - 800
    assert report.clients == (200, 200)
    assert report.evidence < 1
    assert [each.metric for each in report.results] == ["revenue", "clicked"]
    one, other = report.first, plain.first
    assert one.sums[0].outcome == pytest.approx(other.sums[0].outcome)
    assert one.gain > 0.5
    assert one.difference.deviation < 0.7 * other.difference.deviation
    assert other.gain == 0.0
    assert one.difference.low < 1 < one.difference.high
    assert other.difference == difference(*other.sums)
    assert one.relative is not None
    assert one.relative.low > 0


def test_a_broken_split_and_clients_in_both_groups_are_noticed() -> None:
    rows = {"variant": ["a"] * 600 + ["b"] * 420, "y": [0.0, 1.0] * 510,
            "client": [str(n) for n in range(1020)]}  # fmt: skip
    report = compare_groups(rows, assignment="variant")
    assert report.evidence >= 1_000
    assert "not the planned one" in report.warnings[0]
    assert compare_groups(rows, assignment="variant", share=0.41).warnings == ()
    rows["client"] = [str(n % 600) for n in range(1020)]
    assert (
        "420 clients are in both groups" in compare_groups(rows, assignment="variant").warnings[-1]
    )


def test_values_that_are_not_numbers_are_counted() -> None:
    rows = {"g": ["a", "b"] * 100, "y": [math.inf, *([1.0, 2.0, 3.0] * 66), math.nan],
            "client": list(range(200))}  # fmt: skip
    report = compare_groups(rows, assignment="g")
    assert report.warnings == (
        "2 rows have no number for y, or one beyond 1e+50, and do not count for it.",
    )
    assert sum(each.size for each in report.first.sums) == 198


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither teams nor credits"):
        compare_interleaved({"search_id": [1], "clicked": [True]})
    rows = {"search_id": [1, 1], "clicked": [False] * 2, "team": ["a", "b"]}
    with pytest.raises(DataError, match=r"no search that says something.*no action: 1"):
        compare_interleaved(rows, pair=("a", "b"))
    with pytest.raises(DataError, match="the groups a, b, c in g"):
        compare_groups({"g": ["a", "b", "c"], "y": [1, 2, 3]}, assignment="g")
    with pytest.raises(DataError, match="no column 'x'"):
        compare_groups({"g": ["a", "b"], "y": [1, 2]}, assignment="x")
    with pytest.raises(DataError, match="no metric 'z'"):
        compare_groups({"g": ["a", "b"], "y": [1, 2]}, assignment="g", metrics=["z"])
    with pytest.raises(ArgumentError, match="share"):
        compare_groups({"g": ["a", "b"], "y": [1, 2]}, assignment="g", share=1.0)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="cannot be read"):
        compare_groups(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="does not exist"):
        compare_groups(tmp_path / "none.csv")


def test_columns_of_others_named_like_ours_change_nothing() -> None:
    rows = {"search_id": list(range(400)), "team": ["old", "old", "new", "old"] * 100,
            "clicked": [True] * 400}  # fmt: skip
    plain = compare_interleaved(rows, pair=("old", "new"))
    assert plain.first.difference.value == -0.5
    for name in ("value", "acted", "_value", "_acted", "_problem", "credit_", "count"):
        assert compare_interleaved({**rows, name: [1] * 400}, pair=("old", "new")) == plain


def test_what_cannot_be_read_is_counted_and_does_not_count() -> None:
    searches: list[Any] = [*range(396), None, None, 398, 399]
    teams = ["new", "old", "new", "new"] * 99 + ["new", "new", "third", "new"]
    clicked = [1.0] * 396 + [1.0, 1.0, 1.0, math.nan]
    rows = {"search_id": searches, "team": teams, "clicked": clicked}
    report = compare_interleaved(rows, pair=("old", "new"))
    assert report.counts == {
        "read": 400, "new preferred": 297, "old preferred": 99, "other team": 1, "no action": 1,
        "rows without a search id": 2,
    }  # fmt: skip
    credit = [*([0.5, -0.5, 0.5, 0.5] * 99), math.inf, math.nan, -math.inf, 0.5]
    rows = {"search_id": list(range(400)), "credit": credit, "clicked": [True] * 400}
    report = compare_interleaved(rows)
    assert report.counts == {
        "read": 400, "new preferred": 298, "old preferred": 99, "credit is not a number": 3,
    }  # fmt: skip
    assert report.first.sums[1].size == 397
    with pytest.raises(DataError, match="no document of 'zzz'") as error:
        compare_interleaved({**rows, "team": ["new", "old"] * 200}, pair=("old", "zzz"))
    assert "new, old" in str(error.value)


def test_a_preference_is_at_most_1_and_a_broken_split_shows_nothing() -> None:
    rows = {"search_id": list(range(60)), "team": ["new"] * 59 + ["old"], "clicked": [1] * 60}
    assert compare_interleaved(rows, pair=("old", "new")).first.difference.high == 1
    arms = ["a"] * 600 + ["b"] * 1400
    bought = [n % 10 == 0 for n in range(600)] + [n % 2 == 0 for n in range(1400)]
    report = compare_groups({"arm": arms, "bought": bought, "client": list(range(2000))},
                            assignment="arm")  # fmt: skip
    assert report.first.difference.decided
    assert report.verdict.startswith("The split of clients is not the planned one")
    assert not any(each.shown for each in require_online(report, ["b > a", "bought > baseline"]))
    planned = compare_groups({"arm": arms, "bought": bought, "client": list(range(2000))},
                             assignment="arm", share=0.7)  # fmt: skip
    assert all(each.shown for each in require_online(planned, ["b > a", "bought > baseline"]))


def test_clients_that_are_not_known_or_several_are_said() -> None:
    rows = interleaved(30)
    some, others = {f"s{n}" for n in range(1, 9)}, {f"s{n}" for n in range(21, 29)}
    rows["client"] = [
        None if search in some else f"another of {rank}" if search in others else client
        for search, rank, client in zip(
            rows["search_id"], rows["rank"], rows["client"], strict=True
        )
    ]
    counted = {
        search
        for search, clicked, credit in zip(
            rows["search_id"], rows["clicked"], rows["credit"], strict=True
        )
        if clicked and credit
    }
    assert compare_interleaved(rows).warnings == (
        f"{len(counted & some)} searches have no client: each of them counts as one.",
        f"{len(counted & others)} searches have several clients, of which one counts: the log may "
        "mix searches.",
    )
    groups = {
        "policy": ["a", "b"] * 50, "value": [1.0, 2.0] * 50, "client": [None, *range(1, 100)],
    }  # fmt: skip
    (warning,) = compare_groups(groups).warnings
    assert warning == "1 rows have no client: each of them counts as one."


def test_searches_of_two_experiments_and_unreadable_credits_are_counted() -> None:
    rows = {
        "search_id": [n // 2 for n in range(400)],
        "credit": ["1", "-0.5"] * 197 + ["much", "1", "1e300", "1", "inf", "1"],
        "clicked": [True] * 400,
        "policy": ["e"] * 198 + ["d", "e"] + ["e"] * 200,
    }
    report = compare_interleaved(rows, experiment="e")
    assert report.counts == {
        "read": 200, "new preferred": 196, "credit is not a number": 3, "several experiments": 1,
    }  # fmt: skip
    assert query_outcomes(rows | {"query": ["q"] * 400}, experiment="e") == (
        {"q": (0, 196)},
        {
            "searches left out: credit is not a number": 3,
            "searches left out: several experiments": 1,
        },
    )
    with pytest.raises(DataError, match=r"has no experiment 'f'.*There are d, e"):
        compare_interleaved(rows, experiment="f")


def test_searches_of_another_pair_are_of_another_experiment() -> None:
    rows = {
        "search_id": [n // 2 for n in range(300)],
        "team": ["old", "new"] * 100 + ["old", "slow"] * 50,
        "credit": [-1, 1] * 150,
        "clicked": [False, True] * 150,
        "policy": ["first"] * 200 + ["second"] * 100,
    }
    report = compare_interleaved(rows, experiment="first")
    assert report.counts == {"read": 150, "new preferred": 100, "other experiment": 50}
    reasons = query_outcomes(rows | {"query": ["q"] * 300}, experiment="first")[1]
    assert reasons == {"searches left out: other experiment": 50}


def test_rankings_named_old_and_new_are_what_their_names_are() -> None:
    rows = {"search_id": list(range(100)), "team": ["new"] * 70 + ["old"] * 30,
            "clicked": [True] * 100}  # fmt: skip
    report = compare_interleaved(rows)
    assert (report.old, report.new, report.counts["new preferred"]) == ("old", "new", 70)
    assert facts(report)["rankings"] == "new new, old old"


def test_numbers_too_large_to_add_up_do_not_count() -> None:
    random = np.random.default_rng(0)
    values = random.exponential(10, 1000)
    rows = {"group": ["a", "b"] * 500, "client": list(range(1000)), "revenue": values}
    expected = compare_groups(rows | {"revenue": [math.nan, *values[1:]]}, assignment="group")
    for huge in (1e300, 1e80, -1e160, math.inf):
        report = compare_groups(rows | {"revenue": [huge, *values[1:]]}, assignment="group")
        ends = (report.first.difference.low, report.first.difference.high)
        value = expected.first.difference
        assert ends == pytest.approx((value.low, value.high))
        assert report.warnings == (
            "1 rows have no number for revenue, or one beyond 1e+50, and do not count for it.",
        )


@pytest.mark.parametrize("offset", [0.1, 1.7e12])
def test_what_rounding_leaves_decides_nothing(offset: float) -> None:
    random = np.random.default_rng(0)
    values = offset + (offset > 1) * random.normal(0, 1000, 3000)
    rows = {"group": ["a", "b", "b"] * 1000, "client": list(range(3000)), "value": values}
    assert math.isinf(compare_groups(rows, assignment="group", share=2 / 3).first.difference.low)


def test_slices_of_one_group_are_counted() -> None:
    rows = {
        "group": ["a", "b"] * 500, "client": list(range(1000)),
        "click_rate": [0, 1, 1, 1] * 250, "country": ["at", "de", "at", "at"] * 250,
    }  # fmt: skip
    report = compare_groups(rows, assignment="group", slices="country")
    assert [each.slice_name for each in report.results] == ["", "at"]
    assert report.warnings[-1].startswith("250 rows are in no slice, in one of a single group")


def test_what_an_import_left_out_is_in_the_report(tmp_path: Path) -> None:
    rows = {
        "search_id": [n // 2 for n in range(200)], "query": ["tv"] * 200,
        "document_id": ["a", "b"] * 100, "rank": [1, 2] * 99 + [1, 0],
        "clicked": [True, False] * 100, "team": ["new", "old"] * 100,
    }  # fmt: skip
    log = import_clicks(rows, tmp_path / "log", columns={"team": "team"})
    report = compare_interleaved(log.folder)
    assert report.imported == log.counts
    assert report.first.difference.value == 1
    shown = log.counts["shown"]
    assert shown["read"] == sum(shown.values()) - shown["read"] == 200
    text = ", ".join(f"{name} {count:,}" for name, count in shown.items())
    assert facts(report)["import, shown"] == text
    document = online_document(report)
    assert text in document.as_markdown()
    assert text in document.as_html()


def test_clients_without_a_number_are_in_the_split() -> None:
    bought = [4.0 if n % (20 if n % 2 else 5) < 2 else math.nan for n in range(4000)]
    rows = {"arm": ["a", "b"] * 2000, "spent": bought, "client": list(range(4000))}
    report = compare_groups(rows, assignment="arm")
    assert report.clients == (2000, 2000)
    assert not report.is_broken
    nothing = compare_groups({**rows, "spent": [math.nan] * 4000}, assignment="arm")
    assert nothing.verdict == "There is too little to say anything yet (0 clients)."
    assert not require_online(nothing, ["b > a"])[0].shown


@pytest.mark.parametrize("before", [None, "earlier"])
def test_clients_have_a_past_whatever_group_they_were_in(before: str | None) -> None:
    rows = groups()
    since = BEGIN + timedelta(days=9)
    same = compare_groups(rows, assignment="variant", metrics=["revenue"], since=since)
    rows["variant"] = [
        group if time >= since else before
        for group, time in zip(rows["variant"], rows["time"], strict=True)
    ]
    report = compare_groups(
        rows, assignment="variant", metrics=["revenue"], since=since, pair=("a", "b")
    )
    assert report.counts == same.counts
    assert report.first.gain == pytest.approx(same.first.gain)


def test_a_past_that_is_not_a_number_is_said() -> None:
    random = np.random.default_rng(0)
    before = random.random(1000)
    rows = {"g": ["a", "b"] * 500, "y": before + random.random(1000), "client": list(range(1000)),
            "before": ["?" if n % 4 == 0 else str(x) for n, x in enumerate(before)]}  # fmt: skip
    report = compare_groups(rows, assignment="g", past="before")
    assert report.first.gain > 0.2
    assert report.warnings == (
        "Clients of 250 rows have no number in before: they count as the others do on average.",
    )


def documents(searches: int) -> dict[str, list[Any]]:
    """A row per document of a table of others: two documents for each search."""
    return {
        "search_id": [n // 2 for n in range(2 * searches)],
        "document_id": ["d", "e"] * searches,
        "rank": [1, 2] * searches,
        "clicked": ["yes" if n % 3 == 0 else "no" for n in range(2 * searches)],
        "policy": ["old" if n // 2 % 2 else "new" for n in range(2 * searches)],
    }


def test_searches_of_several_groups_do_not_count() -> None:
    rows = documents(200)
    rows["policy"][:20] = ["old", "new"] * 10
    report = compare_groups(rows)
    assert report.counts == {"read": 200, "compared": 190, "several groups": 10}
    with pytest.raises(DataError, match=r"no row of the group 'x'.*several groups: 10"):
        compare_groups(rows, pair=("old", "x"))


def test_a_table_with_documents_needs_only_what_its_metrics_are_of() -> None:
    report = compare_groups(documents(200))
    named = ["click_rate", "abandonment", "clicks", "reciprocal_rank"]
    assert [each.metric for each in report.results] == named
    assert report.first.old == pytest.approx(2 / 3, abs=0.01)
    with pytest.raises(DataError, match="no metric 'purchase_rate'"):
        compare_groups(documents(200), metrics=["purchase_rate"])


def test_a_split_of_rows_without_clients_is_doubted() -> None:
    rows = {"arm": ["a"] * 600 + ["b"] * 400, "y": [0.0, 1.0] * 500}
    report = compare_groups(rows, assignment="arm")
    assert report.is_broken
    assert report.warnings[-1].endswith("a sound split of clients may look broken.")


def test_a_ranking_is_not_compared_with_itself() -> None:
    rows = {"search_id": list(range(60)), "team": ["new", "old"] * 30, "clicked": [1] * 60}
    with pytest.raises(ArgumentError, match="'old' is both"):
        compare_interleaved(rows, pair=("old", "old"))
    with pytest.raises(ArgumentError, match="'new' is both"):
        compare_groups({"g": ["new", "old"], "y": [1, 2]}, assignment="g", pair=("new", "new"))


def test_a_slice_without_a_name_is_not_taken_for_all() -> None:
    rows = {"search_id": list(range(400)), "team": ["new", "new", "old", "new"] * 100,
            "clicked": [1] * 400, "country": ["", "de"] * 200}  # fmt: skip
    report = compare_interleaved(rows, pair=("old", "new"), slices="country")
    assert [each.slice_name for each in report.results] == ["", "de"]
    assert len(require_online(report, ["preference > 0"])) == 1
    assert report.warnings[-1].startswith("200 searches are in no slice")


def test_more_abandonment_is_not_called_better() -> None:
    rows = documents(4000)
    rows["clicked"] = [
        policy == "old" and n % 8 == 2 for n, policy in enumerate(rows["policy"])
    ]  # fmt: skip
    report = compare_groups(rows, metrics=["abandonment"], pair=("old", "new"))
    assert report.verdict == "abandonment is higher with new than with old (4,000 searches)."
    with pytest.raises(ArgumentError, match="less abandonment is better"):
        require_online(report, ["new > old"])
    assert [e.shown for e in require_online(report, ["abandonment < baseline"])] == [False]


def test_requirements_have_the_intervals_of_the_report() -> None:
    random = np.random.default_rng(0)
    rows = {"g": ["a", "b"] * 500, "y": random.random(1000)}
    report = compare_groups(rows, assignment="g", tuned=100_000)
    (required,) = require_online(report, ["y > baseline"])
    assert required.beyond == report.first.difference
