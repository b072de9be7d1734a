"""Logs of others become the table of clicks, and every row that does not is counted."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium.clicks import ClickLog, ImportRules, import_clicks
from podium.errors import ArgumentError, DataError
from tests.cli.run_podium import fail, succeed
from tests.clicks.records import BEGIN, event, query, write
from tests.data.shared_files import shared

SAMPLE = "clicks/chorus-ubi/ubi_queries_events.ndjson.gz"


def rows(log: ClickLog, columns: str = "search_id, document_id, rank, clicked") -> list[Any]:
    with log.sql() as connection:
        return connection.sql(f"SELECT {columns} FROM clicks ORDER BY ALL").fetchall()


def adds_up(counts: Mapping[str, Mapping[str, int]]) -> bool:
    return all(
        ledger["read"] == sum(ledger.values()) - ledger["read"] for ledger in counts.values()
    )


def test_a_list_and_its_clicks(tmp_path: Path) -> None:
    records = [
        query("s", "tv", ["a", "b", "c"]),
        event("s", "click", "b"),
        event("s", "purchase", "b"),
    ]
    log = import_clicks(write(tmp_path / "ubi.ndjson", records), tmp_path / "log")
    assert rows(log, "search_id, query, document_id, rank, clicked, purchase") == [
        ("s", "tv", "a", 1, False, False),
        ("s", "tv", "b", 2, True, True),
        ("s", "tv", "c", 3, False, False),
    ]
    assert (log.rows, log.searches, log.queries, log.clicks) == (3, 1, 1, 1)
    assert log.counts == {
        "records": {"read": 3, "click": 1, "purchase": 1, "query": 1},
        "shown": {"read": 3, "kept": 3},
        "actions": {"read": 2, "kept": 2},
    }
    assert ClickLog.open(tmp_path / "log") == log
    assert not (tmp_path / "log/unfinished").exists()


@pytest.mark.parametrize("base", [0, 1])
def test_impressions_are_what_was_shown_and_ordinals_may_begin_at_0_or_1(
    tmp_path: Path, base: int
) -> None:
    records = [query("s", "tv", ["a", "b", "c"])]
    records += [event("s", "impression", name, base + n) for n, name in enumerate("ab")]
    log = import_clicks(write(tmp_path / "ubi.ndjson", records), tmp_path / "log")
    assert rows(log) == [("s", "a", 1, False), ("s", "b", 2, False)]
    assert log.facts["rank_base"] == {"": base}


def test_a_list_tells_the_base_where_no_first_ordinal_was_logged(tmp_path: Path) -> None:
    records = [query("s", "tv", ["a", "b", "c"]), event("s", "impression", "c", 2)]
    log = import_clicks(write(tmp_path / "ubi.ndjson", records), tmp_path / "log")
    assert (rows(log), log.facts["rank_base"]) == ([("s", "c", 3, False)], {"": 0})


@pytest.mark.parametrize("name", ["query_response_object_ids", "query_response_objects_ids"])
def test_older_names_of_the_list(tmp_path: Path, name: str) -> None:
    records = [query("s", "tv", **{name: ["a", "b"]})]
    log = import_clicks(write(tmp_path / "ubi.ndjson", records), tmp_path / "log")
    assert (log.rows, log.facts["hit_lists"]) == (2, {name: 1})


def test_every_rule_drops_and_counts(tmp_path: Path) -> None:
    later = 2 * 3600
    records = [
        query("s", "tv", ["a", "b"]),
        event("s", "click", "a"),
        event("s", "click", "a", after=2),  # a double click
        event("s", "click", "b", after=later),
        event("s", "click", "b", after=-later),
        event("s", "click", "z"),
        event("gone", "click", "a"),
        query("again", "tv", ["a", "b"], timestamp=BEGIN + 5000),  # a reload
        query("much later", "tv", ["a", "b"], timestamp=BEGIN + 60_000),
        query("crawled", "tv", ["a"], user_agent="Googlebot/2.1", client_id="robot"),
        query("other order", "tv", ["a"], client_id="d"),
        event("other order", "product_sort", "", client_id="d"),
        query("blank", "", ["a"], client_id="e"),
        query("future", "tv", ["a"], timestamp=10**13 - 1, client_id="f"),
        query("long", "tv", [f"d{n}" for n in range(1003)], client_id="g"),
    ]
    log = import_clicks(write(tmp_path / "ubi.ndjson", records), tmp_path / "log")
    kept = 2 + 2 + 1000
    assert log.counts["shown"] == {
        "read": kept + 8, "kept": kept, "reload": 2, "bot": 1, "re-sorted by the user": 1,
        "no query text": 1, "time in the future": 1, "rank above 1,000": 3 - 1,
    } | {"read": kept + 9, "rank above 1,000": 3}  # fmt: skip
    assert log.counts["actions"] == {
        "read": 6, "kept": 1, "repeated": 1, "late": 1, "before its search": 1,
        "document was not shown": 1, "search was not shown": 1,
    }  # fmt: skip
    assert adds_up(log.counts)


def test_a_client_with_many_searches_or_clicks_on_all_is_a_bot(tmp_path: Path) -> None:
    names = ("search_id", "query", "document_id", "rank", "clicked", "client", "time")
    table: dict[str, list[Any]] = {name: [] for name in names}
    for client, searches, clicks in (("much", 4, 0), ("all", 3, 1), ("person", 3, 0)):
        for search in range(searches):
            values = (f"{client}{search}", f"q{search}", "d", 1, clicks, client, BEGIN)
            for name, value in zip(table, values, strict=True):
                table[name].append(value)
    rules = ImportRules(bot_searches=3, bot_shown=3, bot_share=0.9)
    log = import_clicks(pa.table(table), tmp_path / "log", rules=rules)
    assert log.counts["shown"] == {"read": 10, "kept": 3, "bot": 7}


def test_clients_are_hashed_with_the_key_and_addresses_are_not_kept(tmp_path: Path) -> None:
    attributes = {"ip": "130.8.186.60", "browser": "Mozilla/5.0"}
    records = [
        query("s", "tv", ["a"], client_id="somebody@example.org", query_attributes=attributes),
        {
            **event("s", "click", "a"),
            "event_attributes": {"object": {"object_id": "a"}, **attributes},
        },
    ]
    path = write(tmp_path / "ubi.ndjson", records)
    clients = []
    for name, key in (("one", "k"), ("two", "k"), ("three", None), ("four", None)):
        log = import_clicks(path, tmp_path / name, key=key)
        content = b"".join(
            Path(file).read_bytes() for file in [*log.paths, str(tmp_path / name / "clicks.json")]
        )
        assert not any(secret in content for secret in (b"somebody", b"130.8", b"Mozilla"))
        clients.append(rows(log, "client")[0][0])
    assert clients[0] == clients[1]
    assert len({clients[0], clients[2], clients[3]}) == 3


def test_the_sample(tmp_path: Path) -> None:
    log = import_clicks(shared(SAMPLE), tmp_path / "log")
    assert log.facts["rank_base"] == {"Chorus": 1, "esci_ubi_sample": 0}
    assert log.facts["applications"] == {"Chorus": 1226, "esci_ubi_sample": 1060, "ubi-demo": 11}
    assert log.counts["records"]["read"] == 2 * (473 + 3448)
    assert log.counts["records"]["impression"] == 999 + 1000
    assert adds_up(log.counts)
    for application, pairs, moved in (("Chorus", 490, 50), ("esci_ubi_sample", 595, 0)):
        part = import_clicks(shared(SAMPLE), tmp_path / application, application=application)
        with part.sql() as connection:
            assert connection.sql(
                "SELECT count(*), count(*) FILTER (ranks > 1) FROM (SELECT "
                "count(DISTINCT rank) AS ranks FROM clicks GROUP BY query, document_id)"
            ).fetchall() == [(pairs, moved)]


def test_a_ranking_log_and_its_events(tmp_path: Path) -> None:
    ranking = {
        "time": "2026-01-01T00:00:00.000+00:00", "model": "shoes", "search_id": "s",
        "query": "shoes", "ids": ["a", "b", "c", "d"], "scores": [0.1, 0.9, 0.9, 0.5],
        "features": {}, "from": 1, "size": 2,
    }  # fmt: skip
    folder = tmp_path / "rankings"
    folder.mkdir()
    write(folder / "rankings-1.jsonl", [ranking, {**ranking, "search_id": None}])
    events = write(
        tmp_path / "events.jsonl",
        [
            {
                "search_id": "s",
                "document_id": "d",
                "action": "click",
                "time": "2026-01-01T00:00:09Z",
            },
            {"search_id": "s", "document_id": "d", "action": "hover", "time": 1},
            {"document_id": "d", "action": "click", "time": 1},
        ],
    )
    log = import_clicks(folder, tmp_path / "log", events=[events])
    # In the order of scores b, c, d, a; the page is of two documents after the first.
    assert rows(log, "search_id, query, document_id, rank, clicked, policy") == [
        ("s", "shoes", "c", 2, False, "shoes"),
        ("s", "shoes", "d", 3, True, "shoes"),
    ]
    assert log.counts["records"] == {
        "read": 5, "click": 1, "event of another action": 1, "event without search_id": 1,
        "ranking": 1, "ranking without search_id": 1,
    }  # fmt: skip


def test_a_ranking_log_with_interleaved_pages(tmp_path: Path) -> None:
    page = {
        "time": "2026-01-01T00:00:00.000+00:00", "model": "old", "search_id": "s", "query": "shoes",
        "ids": ["a", "b", "c", "d"], "scores": [4, 3, 2, 1], "from": 0, "size": 2, "client": "x",
        "experiment": {"id": "team-draft-1", "method": "team-draft", "old": "old", "new": "new"},
        "shown": ["a", "d"], "credits": [0.0, 1.0],
    }  # fmt: skip
    second = {**page, "from": 2, "shown": ["b", "c"], "credits": [-1.0, 1.0]}
    uneven = {**page, "search_id": "t", "credits": [0.0]}
    alone = {key: page[key] for key in ("time", "model", "query", "ids", "scores", "from", "size")}
    folder = tmp_path / "rankings"
    folder.mkdir()
    lines = [page, second, second, uneven, {**alone, "search_id": "u"}]
    write(folder / "rankings-1.jsonl", lines)
    log = import_clicks(folder, tmp_path / "log", key="k")
    names = "search_id, document_id, rank, policy, team, credit"
    assert rows(log, names) == [
        ("s", "a", 1, "team-draft-1", None, 0.0),
        ("s", "b", 3, "team-draft-1", "old", -1.0),
        ("s", "c", 4, "team-draft-1", "new", 1.0),
        ("s", "d", 2, "team-draft-1", "new", 1.0),
        ("u", "a", 1, "old", None, None),
        ("u", "b", 2, "old", None, None),
    ]
    assert log.counts["records"] == {
        "read": 5, "another ranking of its search": 1, "damaged ranking": 1, "ranking": 3,
    }  # fmt: skip
    assert rows(log, "DISTINCT search_id, client IS NULL") == [("s", False), ("u", True)]
    assert ("x",) not in rows(log, "client")
    # A log without clients has those of events, such as UBI's.
    events = write(tmp_path / "e.jsonl", [event("u", "click", "b", timestamp=1_767_225_609_000)])
    other = import_clicks(folder, tmp_path / "other", events=[events], key="k")
    assert rows(other, "DISTINCT search_id, client IS NULL") == [("s", False), ("u", False)]
    assert rows(other, "search_id, document_id, clicked")[-1] == ("u", "b", True)


def test_events_of_metarank(tmp_path: Path) -> None:
    records = [
        {"event": "item", "id": "1", "timestamp": str(BEGIN), "item": "a", "fields": []},
        {
            "event": "ranking", "id": "r", "timestamp": str(BEGIN), "user": "u", "session": "x",
            "fields": [{"name": "source", "value": "search"}, {"name": "query", "value": "tv"}],
            "items": [{"id": "a", "relevancy": 0}, {"id": "b"}],
        },
        {"event": "interaction", "id": "i", "ranking": "r", "timestamp": str(BEGIN + 9),
         "type": "click", "item": "b"},
        {"event": "interaction", "id": "j", "ranking": "r", "type": "like", "item": "a"},
    ]  # fmt: skip
    log = import_clicks(write(tmp_path / "events.jsonl", records), tmp_path / "log")
    assert rows(log) == [("r", "a", 1, False), ("r", "b", 2, True)]
    assert log.counts["records"]["interaction of another type"] == 1


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_tables_with_columns_of_other_names(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"table.{kind}"
    content = {
        "term": ["tv", "tv", "tv"], "id": ["a", "b", "c"], "sid": [7, 7, 7], "pos": [0, 1, 2],
        "hit": [True, False, False],
    }  # fmt: skip
    if kind == "parquet":
        pq.write_table(pa.table(content), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="," if kind == "csv" else "\t")
            writer.writerow(content)
            writer.writerows(zip(*content.values(), strict=True))
    names = ["query=term", "document_id=id", "search_id=sid", "rank=pos", "clicked=hit"]
    options = [word for name in names for word in ("--column", name)]
    printed = json.loads(
        succeed("clicks", "import", path, "-o", tmp_path / "log", *options, "--json")
    )
    assert printed["counts"]["shown"] == {"read": 3, "kept": 3}
    log = ClickLog.open(tmp_path / "log")
    assert rows(log) == [("7", "a", 1, True), ("7", "b", 2, False), ("7", "c", 3, False)]


def test_only_clicks_are_refused_with_what_to_log(tmp_path: Path) -> None:
    path = write(tmp_path / "ubi.ndjson", [event("s", "click", "a", user_query="tv")])
    message = fail("clicks", "import", path, "-o", tmp_path / "log")
    assert "only clicks were logged" in message
    assert "query_response_hit_ids" in message


def test_whole_searches_are_in_the_file_of_their_query(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("podium.clicks.importing._SHARD_ROWS", 40)
    random = np.random.default_rng(0)
    searches = np.repeat(np.arange(100), 3)
    table = pa.table(
        {
            "search_id": searches.astype(str), "query": (searches % 17).astype(str),
            "document_id": random.integers(0, 9, 300).astype(str), "rank": np.tile([1, 2, 3], 100),
            "clicked": random.random(300) < 0.2,
        }
    )  # fmt: skip
    log = import_clicks(table, tmp_path / "log")
    assert len(log.files) > 3
    assert log.queries == 17
    assert log.searches == 100
    total = 0
    for block in log.blocks():
        ranks = np.split(block.rank, block.offsets[1:-1])
        assert all((np.diff(each) >= 0).all() for each in ranks)
        total += len(block.offsets) - 1
    assert total == 100
    assert adds_up(log.counts)


def test_arguments_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "ubi.ndjson", [query("s", "tv", ["a"])])
    table = pa.table({"a": [1]})
    with pytest.raises(ArgumentError, match="no column 'colour'"):
        import_clicks(table, tmp_path / "log", columns={"colour": "a"})
    with pytest.raises(DataError, match="has no column 'search_id'"):
        import_clicks(table, tmp_path / "log")
    with pytest.raises(ArgumentError, match="columns are of tables"):
        import_clicks(path, tmp_path / "log", columns={"rank": "a"})
    with pytest.raises(ArgumentError, match="buy=sold"):
        import_clicks(path, tmp_path / "log", actions={"buy": "sold"})
    with pytest.raises(DataError, match="is not an empty folder"):
        import_clicks(path, tmp_path)
    with pytest.raises(DataError, match="none of the logs that are known"):
        import_clicks(write(tmp_path / "x.json", [{"a": 1}]), tmp_path / "log")
    with pytest.raises(ArgumentError, match="late is -1"):
        ImportRules(late=-1)
    with pytest.raises(DataError, match="is not a log of clicks"):
        ClickLog.open(tmp_path)


HOSTILE: list[Any] = [
    b"", b"{", b"[1]", b"null", b'"text"', b"\xff\xfe{}", b'{"query_id": "\xe9"}',
    b'{"a": 1, "a": 2}',
    {}, [], {"query_id": None}, {"query_id": {}}, {"query_id": [], "user_query": 5},
    {"query_id": 7, "user_query": {"x": 1}, "query_response_hit_ids": "a"},
    {"query_id": 8, "user_query": "tv", "query_response_hit_ids": [None, {}, [], 1, "a", "a", ""]},
    {"query_id": "h", "user_query": "tv", "query_response_hit_ids": list(range(5000))},
    query("t", "tv", ["a"], timestamp="yesterday"), query("u", "tv", ["a"], timestamp=1e300),
    query("v", "tv", ["a"], timestamp="9999-12-31T23:59:59Z"),
    {"query_id": "w", "user_query": "\ud800", "query_response_hit_ids": ["a\u0000b"]},
    {"action_name": 5}, {"action_name": "click"}, {"action_name": "click", "query_id": "h"},
    {"action_name": "click", "query_id": "h", "event_attributes": []},
    {"action_name": "click", "query_id": "h", "event_attributes": {"object": {"object_id": {}}}},
    {"action_name": "impression", "query_id": "i", "application": 5, "event_attributes": {
        "object": {"object_id": "a"}, "position": {"ordinal": "first"}}},
    {"action_name": "impression", "query_id": "i", "user_query": "tv", "event_attributes": {
        "object": {"object_id": "a"}, "position": {"ordinal": -(2**70)}}},
    {"action_name": "impression", "query_id": "i", "user_query": "tv", "event_attributes": {
        "object": {"object_id": "a"}, "position": {"ordinal": 1e400}}},
    {"_source": 5}, {"_source": {"query_id": "z", "user_query": "tv"}}, {"index": 5},
    {"event": "ranking", "id": "r", "items": 5}, {"event": "ranking", "id": "r", "items": [5]},
    {"ids": [], "scores": ["a"]}, {"ids": [1], "scores": [2], "search_id": "q"},
]  # fmt: skip


@pytest.mark.parametrize("kind", ["ubi", "metarank", "rankings"])
def test_hostile_lines_do_not_stop_an_import_and_are_counted(tmp_path: Path, kind: Any) -> None:
    good: list[Any] = {
        "ubi": [query("s", "tv", ["a", "b"])],
        "metarank": [{"event": "ranking", "id": "s", "items": [{"id": "a"}, {"id": "b"}],
                      "fields": [{"name": "query", "value": "tv"}]}],
        "rankings": [{"search_id": "s", "query": "tv", "ids": ["a", "b"], "scores": [2, 1]}],
    }[kind]  # fmt: skip
    random = np.random.default_rng(0)
    for number in range(3):
        lines = [HOSTILE[at] for at in random.integers(0, len(HOSTILE), 60)] + good
        path = write(tmp_path / f"{number}.ndjson", lines)
        log = import_clicks(path, tmp_path / f"log{number}", kind=kind)
        written = [line for line in path.read_bytes().split(b"\n") if len(line) > 1]
        assert log.counts["records"]["read"] == len(written)
        assert adds_up(log.counts)
        assert {("s", "a", 1, False), ("s", "b", 2, False)} <= set(rows(log))


def test_a_table_with_wrong_values_loses_those_rows_alone(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "search_id,query,document_id,rank,clicked,time,propensity\n"
        "1,tv,a,1,1,2026-01-01T00:00:00Z,0.5\n"
        "1,tv,b,second,0,2026-01-01T00:00:00Z,0.5\n"
        ",tv,c,3,0,x,0.5\n"
        "1,,d,4,maybe,,\n"
        "1,tv,,5,0,,\n"
        "1,tv,e,-6,0,,\n"
        "1,tv,f,7,0,,7\n"
        "1,tv,g,8,0,2999-01-01,\n"
    )
    log = import_clicks(tmp_path / "t.csv", tmp_path / "log")
    assert log.counts["shown"] == {
        "read": 8, "kept": 1, "no rank": 1, "no search id": 1, "no query text": 1,
        "no document id": 1, "rank below the first": 1, "propensity not above 0 and up to 1": 1,
        "time in the future": 1,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.long
def test_spark_runs_the_same_statement(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyspark.sql")
    import duckdb

    random = np.random.default_rng(0)
    count = 30_000
    search = random.integers(0, 6000, count)
    search[:200] = np.arange(6000, 6200)  # lists of one document, again and again
    served = pa.table(
        {
            "search_id": [f"s{n}" for n in search], "time": BEGIN + 1000 * (search // 3),
            "query": [f"q{n % 50 * (n < 6000)}" for n in search],
            "document_id": [f"d{n}" for n in random.integers(0, 40, count) * (search < 6000)],
            "rank": random.integers(1, 11, count), "clicked": random.integers(0, 2, count),
            "add_to_cart": np.zeros(count, int), "purchase": np.zeros(count, int),
            "dwell": random.random(count), "policy": ["p"] * count,
            "propensity": np.full(count, 0.5), "team": [None] * (count - 1) + ["a"],
            "credit": random.integers(-1, 2, count).astype(float),
            "client": [f"c{n * n % 37}" if n < 6000 else f"r{n % 5}" for n in search],
            "bot": np.zeros(count, int),
            "sorted": (search % 91 == 0).astype(int),
        }
    )  # fmt: skip
    acts = random.integers(0, 7000, 9000)
    actions = pa.table(
        {
            "search_id": [f"s{n}" for n in acts],
            "time": BEGIN + 1000 * (acts // 3) + random.integers(-600_000, 5_000_000, 9000),
            "document_id": [f"d{n}" for n in random.integers(0, 40, 9000)],
            "action": random.choice(["click", "purchase"], 9000), "dwell": random.random(9000),
        }
    )  # fmt: skip
    statement = ImportRules(bot_searches=250).join()
    connection = duckdb.connect()
    connection.register("served", served)
    connection.register("actions", actions)
    expected = connection.sql(statement).fetchall()
    assert {row[-1] for row in expected} == {None, "bot", "re-sorted by the user", "reload"}
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    for name in ("bindAddress", "host"):
        builder = builder.config(f"spark.driver.{name}", "127.0.0.1")
    spark = builder.getOrCreate()
    try:
        for name, table in (("served", served), ("actions", actions)):
            pq.write_table(table, tmp_path / f"{name}.parquet")
            spark.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView(name)
        result = [tuple(row) for row in spark.sql(statement).collect()]
    finally:
        spark.stop()
    order = lambda row: tuple(map(str, row))  # noqa: E731
    assert sorted(map(order, result)) == sorted(map(order, expected))
