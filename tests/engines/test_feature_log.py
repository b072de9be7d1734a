"""Features logged in running engines are those that the engines rank by."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import numpy as np
import pytest

from podium.data import Dataset, read_parquet
from podium.errors import DataError
from podium.export.live.http_client import Retry
from podium.features import read_definitions
from podium.features.definitions import FeatureDefinitions
from podium.features.feature_log import FeatureLog, LogSettings, log_features, upload_feature_set
from podium.features.feature_search import detect_target, feature_search
from podium.features.queries_file import read_queries
from podium.features.search_query import SearchQuery
from tests.cli.run_podium import PODIUM, fail, podium
from tests.engines.servers import SolrServer
from tests.features.collection import DEFINITIONS, MORE, collection, fill_opensearch, fill_solr

pytestmark = pytest.mark.slow

DEPTH = 20
COLLECTION = collection()
NUMBER = itertools.count()


@pytest.fixture(scope="module")
def shop(opensearch_ltr) -> str:
    """The address of an index with the collection."""
    return fill_opensearch(opensearch_ltr.url, "feature-log", COLLECTION.documents)


@pytest.fixture(scope="module", params=["solr", "solr_9"])
def core(request) -> Iterator[str]:
    """The address of a core of Solr 8 or 9 with the collection."""
    server: SolrServer = request.getfixturevalue(request.param)
    yield fill_solr(server.core, COLLECTION.documents)
    delete = {"delete": {"query": "*:*"}}
    httpx2.post(f"{server.core}/update?commit=true", json=delete, trust_env=False, timeout=60)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with definitions, queries and judgments."""
    (tmp_path / "features.toml").write_text(DEFINITIONS + MORE)
    COLLECTION.write_queries(tmp_path / "queries.jsonl")
    COLLECTION.write_qrels(tmp_path / "judgments.qrels")
    return tmp_path


class Proxy(ThreadingHTTPServer):
    """Passes requests on to an engine, counts searches, and answers some itself.

    Attributes:
        searches: The bodies of searches that it passed on.
        refusals: Statuses and headers to answer the next searches with.
        after: After how many searches it waits forever with the answer.
    """

    daemon_threads = True

    def __init__(self, engine: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.engine = engine
        self.searches: list[bytes] = []
        self.times: list[float] = []
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.after: int | None = None


class _Handler(BaseHTTPRequestHandler):
    server: Proxy

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if "_search" in self.path:
            self.server.times.append(time.monotonic())
            if self.server.refusals:
                status, headers = self.server.refusals.pop(0)
                self._answer(status, b"{}", headers)
                return
            self.server.searches.append(body)
            while self.server.after is not None and len(self.server.searches) > self.server.after:
                time.sleep(0.05)
        answer = httpx2.request(
            self.command, self.server.engine + self.path, content=body, trust_env=False,
            headers={"content-type": self.headers.get("content-type", "application/json")},
            timeout=60,
        )  # fmt: skip
        self._answer(answer.status_code, answer.content, {})

    do_GET = do_POST = do_PUT = do_DELETE = _pass

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def proxy(address: str) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy before an index; gives it and the address of the index there."""
    parts = urlsplit(address)
    server = Proxy(f"{parts.scheme}://{parts.netloc}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}{parts.path}"
    finally:
        server.after = None
        server.shutdown()
        thread.join()
        server.server_close()


def expected_rows(definitions: FeatureDefinitions, query: dict[str, str], ids: list[str]):
    """The features that follow from documents and queries alone; NaN for those of the engine."""
    rows = np.full((len(ids), len(definitions.names)), np.nan, np.float32)
    column = {name: number for number, name in enumerate(definitions.names)}
    terms = query["text"].split()
    for row, name in enumerate(ids):
        document = COLLECTION.documents[name]
        title = set(document["title"].split())
        rows[row, column["popularity"]] = document.get("clicks", np.nan)
        rows[row, column["age"]] = document.get("days", 9)
        rows[row, column["query_words"]] = len(terms)
        rows[row, column["country"]] = {"at": 0, "de": 1}.get(query["country"], np.nan)
        rows[row, column["overlap"]] = len(title & set(terms)) / len(set(terms))
        rows[row, column["kind"]] = {"new": 0, "used": 1}.get(document.get("kind", ""), 7)
    return rows


def check_log(data: Dataset, definitions: FeatureDefinitions) -> None:
    """Hold every logged row against the collection."""
    assert data.definitions_hash == definitions.hash
    assert data.feature_names == definitions.names
    queries = {query["id"]: query for query in COLLECTION.queries}
    column = {name: number for number, name in enumerate(data.feature_names)}
    assert data.query_ids.to_pylist() == [query["id"] for query in COLLECTION.queries]
    for query in data:
        assert query.document_ids is not None
        ids = query.document_ids.to_pylist()
        assert len(set(ids)) == len(ids) <= DEPTH
        known = queries[query.id]
        expected = expected_rows(definitions, known, ids)
        computed = ~np.isin(data.feature_names, ["title_match", "body_match", "place_match"])
        np.testing.assert_array_equal(query.features[:, computed], expected[:, computed])
        for row, name in enumerate(ids):
            document = COLLECTION.documents[name]
            values = query.features[row]
            in_title = bool(set(document["title"].split()) & set(known["text"].split()))
            in_body = bool(set(document["body"].split()) & set(known["text"].split()))
            has_place = known["place"] in document["body"].split()
            assert bool(values[column["title_match"]] > 0) == in_title
            assert np.isnan(values[column["title_match"]]) != in_title
            assert bool(values[column["body_match"]] > 0) == in_body
            assert (values[column["place_match"]] != 0.25) == has_place


def test_opensearch_logs_what_documents_and_queries_say(shop, files):
    output = files / "data.parquet"
    arguments = [
        "features", "log", files / "features.toml", "--engine", shop, "--queries",
        files / "queries.jsonl", "--depth", DEPTH, "-o", output, "--feature-set", "log_command",
    ]  # fmt: skip
    assert re.fullmatch(
        "OpenSearch has no feature set 'log_command_[0-9a-f]{12}'. Upload it: podium features log "
        "--put.",
        fail(*arguments),
    )
    done = podium(*arguments, "--put", "--labels", files / "judgments.qrels")
    definitions = read_definitions(files / "features.toml")
    data = read_parquet(output, Dataset)
    assert done.returncode == 0, done.stderr
    judged = sum(
        (query.id, name) in COLLECTION.grades
        for query in data
        for name in query.document_ids.to_pylist()  # type: ignore[union-attr]
    )
    assert " ".join(done.stderr.decode().split()) == (
        f"Wrote {data.rows} documents of 50 queries to {output}; 0 queries were not judged; "
        f"{judged} documents were."
    )
    check_log(data, definitions)
    for query in data:
        grades = [
            COLLECTION.grades.get((query.id, name), 0) for name in query.document_ids.to_pylist()
        ]  # type: ignore[union-attr]
        assert query.labels.tolist() == grades
    assert not output.with_name("data.parquet.journal").exists()


def test_solr_logs_what_documents_and_queries_say(core, files):
    assert detect_target(core) == "solr"
    definitions = read_definitions(files / "features.toml")
    search = feature_search(definitions, "solr", core, "said")  # other tests upload the usual one
    queries = files / "queries.jsonl"
    with pytest.raises(DataError, match="Solr has no feature set 'said_"):
        log_features(search, read_queries(queries), files / "data.parquet")
    upload_feature_set(search)
    log_features(search, read_queries(queries), files / "data.parquet", LogSettings(depth=DEPTH))
    check_log(read_parquet(files / "data.parquet", Dataset), definitions)


def check_changed_feature_set(engine: str, address: str, files: Path) -> None:
    """One that was changed by hand has the name of other features."""
    path = files / "features.toml"
    search = feature_search(read_definitions(path), engine, address, "changed")
    path.write_text(path.read_text().replace("missing = 9", "missing = 8"))
    other = feature_search(read_definitions(path), engine, address, "changed")
    assert search.feature_set != other.feature_set
    search.feature_set = other.feature_set
    upload_feature_set(search)
    with pytest.raises(DataError, match=r"'changed_\w{12}' in .* differs from the .* in 'age'"):
        log_features(other, read_queries(files / "queries.jsonl"), files / "data.parquet")
    with pytest.raises(DataError, match=r"'changed_\w{12}' in .* differs from the .* in 'age'"):
        upload_feature_set(other)


def test_another_feature_set_in_opensearch_is_refused(shop, files):
    check_changed_feature_set("opensearch", shop, files)


def test_another_feature_store_in_solr_is_refused(core, files):
    check_changed_feature_set("solr", core, files)


HOSTILE = [
    '"}}, "x": {{"', "{{place}}", "${podium_query}", "${x:y}", "{!xmlparser}<a/>", "title:w1 OR",
    "w1\\", "((((", "_query_:\"{!func}1\"", "w1\n\tw2\u0000\u2028", "*:*", "w1 +-&|!(){}[]^~?:/",
    "$podium_place", "w1 " * 300, "", "   ", "\U0001f600", "efi.query=x", "]",
]  # fmt: skip


def check_hostile_words(engine: str, address: str, files: Path) -> None:
    """Whatever a query has, it is answered, and finds nothing that its words do not name."""
    definitions = read_definitions(files / "features.toml")
    search = feature_search(definitions, engine, address, "hostile_features")
    upload_feature_set(search)
    queries = [
        SearchQuery(f"q{number}", f"{text} w1", {"place": text, "country": text})
        for number, text in enumerate(HOSTILE)
    ]
    log_features(search, queries, files / "data.parquet", LogSettings(depth=500))
    data = read_parquet(files / "data.parquet", Dataset)
    assert data.query_ids.to_pylist() == [query.id for query in queries]
    for query, asked in zip(data, queries, strict=True):
        known = {"w1"} | ({"w2"} if "w2" in asked.text else set())
        names = {
            name
            for name, document in COLLECTION.documents.items()
            if known & {*document["title"].split(), *document["body"].split()}
        }
        assert set(query.document_ids.to_pylist()) <= names  # type: ignore[union-attr]


def test_words_of_a_query_are_only_words_in_opensearch(shop, files):
    check_hostile_words("opensearch", shop, files)


def test_words_of_a_query_are_only_words_in_solr(core, files):
    check_hostile_words("solr", core, files)


def test_operators_that_solr_does_not_take_are_left_out(core, files):
    definitions = read_definitions(files / "features.toml")
    search = feature_search(definitions, "solr", core, "operator_features")
    upload_feature_set(search)
    many = " ".join(f"x{number}" for number in range(1100))
    texts = {"plain": "w1", "trailing": "w1 OR", "leading": "AND w1", "none": '"', "many": many}
    queries = [
        SearchQuery(name, text, {"place": "x", "country": "y"}) for name, text in texts.items()
    ]
    log = log_features(search, queries, files / "data.parquet", LogSettings(depth=500))
    assert (log.queries, log.empty, list(log.refused)) == (3, 0, ["none", "many"])
    ids = [
        set(query.document_ids.to_pylist())
        for query in read_parquet(files / "data.parquet", Dataset)
    ]  # type: ignore[union-attr]
    assert ids[0] == ids[1] == ids[2] != set()


def test_queries_that_the_engine_refuses_are_left_out_and_reported(opensearch_ltr, files):
    """Too many words are refused with status 400, too many terms of a prefix with 500."""
    names = {f"u{number}": {"title": f"u{number}", "body": ""} for number in range(1100)}
    address = fill_opensearch(opensearch_ltr.url, "many-terms", names)
    (files / "features.toml").write_text("""\
[candidates]
template = { bool = { should = [{ prefix = { title = { value = "{{query}}", rewrite = "scoring_boolean" } } }, { match = { body = "{{query}}" } }] } }

[[feature]]
name = "words"
source = "query"
property = "words"
""")  # noqa: E501
    texts = {"terms": "u", "few": "u10", "words": " ".join(f"x{n}" for n in range(1100))}
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (files / "queries.jsonl").write_text("\n".join(lines))
    arguments = [
        "features", "log", files / "features.toml", "--engine", address, "--queries",
        files / "queries.jsonl", "-o", files / "data.parquet",
    ]  # fmt: skip
    done = podium(*arguments)
    assert done.returncode == 1  # two of three are more than one in a hundred
    assert (
        "2 queries are left out (66.7%), because the engine refuses them; the first is terms: "
        in (" ".join(done.stderr.decode().split()))
    )
    assert read_parquet(files / "data.parquet", Dataset).query_ids.to_pylist() == ["few"]
    manifest = json.loads((files / "data.parquet.manifest.json").read_text())
    assert (manifest["queries"], manifest["asked"], manifest["depth"]) == (1, 3, 100)
    assert list(manifest["refused"]) == ["terms", "words"]
    assert all("maxClauseCount" in reason for reason in manifest["refused"].values())
    done = podium(*arguments, "--max-refused", "0.7", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["refused"] == manifest["refused"]


def test_a_killed_log_goes_on_where_it_was(shop, files):
    definitions = read_definitions(files / "features.toml")
    upload_feature_set(feature_search(definitions, "opensearch", shop, "killed_features"))
    output, journal = files / "data.parquet", files / "data.parquet.journal"
    with proxy(shop) as (server, address):
        server.after = 12
        arguments = [
            "features", "log", files / "features.toml", "--engine", address, "--queries",
            files / "queries.jsonl", "--depth", str(DEPTH), "-o", output,
            "--feature-set", "killed_features",
        ]  # fmt: skip
        process = subprocess.Popen([PODIUM, *map(str, arguments)], env=os.environ)
        while len(server.searches) <= 12:
            time.sleep(0.05)
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not output.exists()
        journal.write_bytes(journal.read_bytes() + b'{"query": "unfin')
        asked = server.searches[:12]
        server.after, server.searches = None, []
        done = podium(*arguments)
        assert done.returncode == 0, done.stderr
        again = server.searches
    search = feature_search(definitions, "opensearch", shop, "killed_features")
    bodies = [
        search.search(query, DEPTH).content for query in read_queries(files / "queries.jsonl")
    ]
    assert [json.loads(body) for body in asked + again] == bodies
    assert "38 queries were asked now, the others before" in " ".join(done.stderr.decode().split())
    check_log(read_parquet(output, Dataset), definitions)
    assert not journal.exists()


def test_a_log_does_not_go_on_with_other_settings(shop, files):
    definitions = read_definitions(files / "features.toml")
    search = feature_search(definitions, "opensearch", shop, "settings_features")
    upload_feature_set(search)
    output = files / "data.parquet"
    first = itertools.islice(read_queries(files / "queries.jsonl"), 3)

    def broken() -> Iterator[SearchQuery]:
        yield from first
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log_features(search, broken(), output, LogSettings(depth=DEPTH))
    with pytest.raises(DataError, match="is of a log with other definitions, engine or depth"):
        log_features(search, [SearchQuery("a", "w1")], output, LogSettings(depth=DEPTH + 1))
    changed = [
        SearchQuery(query.id, "w2" if query.id == "q1" else query.text, query.columns)
        for query in itertools.islice(read_queries(files / "queries.jsonl"), 2)
    ]
    log = log_features(search, changed, output, LogSettings(depth=DEPTH))
    assert (log.queries, log.asked) == (2, 1)
    names = read_parquet(output, Dataset)[1].document_ids.to_pylist()  # type: ignore[union-attr]
    assert all(
        "w2" in f"{COLLECTION.documents[n]['title']} {COLLECTION.documents[n]['body']}".split()
        for n in names
    )


def test_a_busy_engine_is_asked_again_when_it_says(shop, files):
    definitions = read_definitions(files / "features.toml")
    upload_feature_set(feature_search(definitions, "opensearch", shop, "busy_features"))
    queries = list(itertools.islice(read_queries(files / "queries.jsonl"), 3))
    with proxy(shop) as (server, address):
        search = feature_search(definitions, "opensearch", address, "busy_features")
        server.refusals = [(429, {"retry-after": "1"}), (503, {})]
        settings = LogSettings(depth=5, retry=Retry(attempts=2, wait=0.01))
        assert log_features(search, queries, files / "a.parquet", settings).asked == 3
        assert len(server.times) == 5
        assert server.times[1] - server.times[0] >= 1.0
        server.refusals = [(503, {})] * 3
        with pytest.raises(DataError, match=r"query 'q0': OpenSearch answers POST .* status 503"):
            log_features(search, queries, files / "b.parquet", settings)
        server.refusals = [(400, {})]  # without an error of the engine
        with pytest.raises(DataError, match=r"query 'q0': .* with status 400"):
            log_features(search, queries, files / "c.parquet", settings)


def test_the_rate_is_kept(shop, files):
    definitions = read_definitions(files / "features.toml")
    upload_feature_set(feature_search(definitions, "opensearch", shop, "rate_features"))
    queries = list(itertools.islice(read_queries(files / "queries.jsonl"), 4))
    with proxy(shop) as (server, address):
        search = feature_search(definitions, "opensearch", address, "rate_features")
        begun = time.monotonic()  # the first search may arrive late
        log_features(search, queries, files / "a.parquet", LogSettings(depth=5, rate=5.0))
        assert len(server.times) == 4
        assert server.times[3] - begun >= 3 / 5.0


def test_queries_without_a_column_or_a_candidate_are_told(shop, files):
    definitions = read_definitions(files / "features.toml")
    search = feature_search(definitions, "opensearch", shop, "column_features")
    upload_feature_set(search)
    output = files / "data.parquet"
    with pytest.raises(DataError, match="query 'a' has no column 'place'"):
        log_features(search, [SearchQuery("a", "w1")], output)
    assert not output.with_name("data.parquet.journal").exists()
    nothing = SearchQuery("a", "absent", {"place": "w1"})
    with pytest.raises(DataError, match="of 1 queries none has a candidate"):
        log_features(search, [nothing], output)
    something = SearchQuery("b", "w1", {"place": "w1"})
    matches = sum(
        "w1" in f"{document['title']} {document['body']}".split()
        for document in COLLECTION.documents.values()
    )
    assert log_features(search, [nothing, something], output) == FeatureLog(
        queries=1, rows=min(matches, 100), asked=1, empty=1, unjudged=0
    )


@pytest.mark.parametrize(
    "line", ['{"query": 1}', '{"query": "a", "key": "b", "ids": 3, "rows": ""}', "[]", "x"]
)
def test_a_damaged_journal_is_refused_with_its_line(shop, files, line):
    definitions = read_definitions(files / "features.toml")
    search = feature_search(definitions, "opensearch", shop, "damaged_features")
    upload_feature_set(search)
    journal = files / "data.parquet.journal"
    journal.write_text(f'{{"format": 1}}\n{line}\n')
    with pytest.raises(DataError, match=r"data\.parquet\.journal, line 2: is not "):
        log_features(search, [SearchQuery("a", "w1")], files / "data.parquet")
