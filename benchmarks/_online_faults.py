"""Interleaved searches of a running engine over time, with one fault after the other.

Simulated clients send each search to two services of the real command, in turn first to the one and
first to the other: one interleaves half of the clients' searches, one does not, and nothing else
differs. Both have two processes, and meet the same faults: a process is killed, which the
supervisor replaces; the engine is frozen; the ranking log's disk is full; and the service is
restarted with another model, which is slow. Between them are searches without a fault, whose times
are compared.

Clicks go to a file of events. What the report counts is counted once more here, from the lines of
the ranking log and the events alone.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

from benchmarks._report import Report
from podium.data import Dataset, read_parquet, read_qrels
from podium.features import read_definitions
from podium.features.feature_log import LogSettings, log_features, upload_feature_set
from podium.features.feature_search import feature_search
from podium.features.queries_file import read_queries
from podium.rankers import NeuralRanker, TreeRanker
from tests.engines.install import installed
from tests.engines.servers import OpenSearchServer
from tests.features.collection import DEFINITIONS, Collection, collection, fill_opensearch
from tests.serving.service import Command

_DEPTH, _BUDGET_SECONDS = 100, 3.0
_CLIENTS, _PEOPLE, _PAIRS_PER_SECOND = 4, 401, 5.0
"""Clients that search at once, the people they speak for, and how often each of them searches."""
_QUIET, _FAULT, _STEP = "no fault", 8.0, 20.0
"""Seconds of a fault, and between two of them."""
_INTERLEAVED, _PLAIN = "interleaved", "plain"
_FAILS_ANYWAY = ("process killed", "engine frozen")
"""Faults by which searches fail whether they are interleaved or not."""
_SLOW_LAYERS = (4096, 4096)
_START_SECONDS = 600.0


@dataclass(frozen=True)
class _Search:
    """A search as its client sees it; status 0 if the connection broke."""

    service: str
    phase: str
    search_id: str
    seconds: float
    status: int
    reranked: bool = False
    experiment: str | None = None


class _Service:
    """One of both services: what it is started with, and what its figures were at its ends."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.log = folder / f"{name}-log"
        self.command: Command | None = None
        self._starts = 0

    def start(self, second: str) -> None:
        models = [f"{each}={self.folder / each}.podium" for each in ("old", second)]
        self._starts += 1
        options = ["--workers", "2", "--search", str(self.folder / "os.toml"),
                   "--ranking-log", str(self.log)]  # fmt: skip
        if self.name == _INTERLEAVED:
            options += ["--interleave", f"old,{second}", "--share", "50%",
                        "--interleave-key-file", str(self.folder / "key")]  # fmt: skip
        path = self.folder / f"{self.name}-{self._starts}.stderr"
        self.command = Command([*models, *options], path)

    @property
    def running(self) -> Command:
        assert self.command is not None
        return self.command

    def wait(self, processes: int = 2) -> None:
        self.running.wait_until_ready(_START_SECONDS)
        deadline = time.monotonic() + _START_SECONDS
        while len(self.running.workers()) < processes:
            if time.monotonic() > deadline:
                raise RuntimeError(self.running.log.read_text())
            time.sleep(0.1)

    def figures(self) -> Counter[str]:
        """Return the log's figures once all that was ranked is written or dropped."""
        previous: Counter[str] = Counter()
        for _ in range(50):
            text = httpx2.get(f"{self.running.address}/metrics", trust_env=False, timeout=60).text
            now: Counter[str] = Counter()
            for line in text.splitlines():
                if line.startswith("podium_serving_") and not line.startswith("#"):
                    name, _, value = line.removeprefix("podium_serving_").rpartition(" ")
                    now[name.partition("{")[0] if "rankings" in name else name] += int(float(value))
            if now == previous:
                return now
            previous = now
            time.sleep(0.2)
        return previous


class _Clients:
    """Clients on the loopback interface, each with a search at both services in flight at most."""

    def __init__(
        self, services: Sequence[_Service], content: Collection, events: Path, seed: int = 0
    ) -> None:
        self._services, self._content, self._events = services, content, events
        self._random = random.Random(seed)
        self._number = 0
        self._lock = threading.Lock()
        self.searches: list[_Search] = []

    def run(self, phase: str, seconds: float, fault: Callable[[], None] | None = None) -> None:
        """Search for so long, while a fault comes and goes."""
        end = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._search_until, args=[phase, end]) for _ in range(_CLIENTS)
        ]
        for thread in threads:
            thread.start()
        if fault is not None:
            fault()
        for thread in threads:
            thread.join()

    def _search_until(self, phase: str, end: float) -> None:
        connections = {
            each.name: http.client.HTTPConnection("127.0.0.1", each.running.port, timeout=60)
            for each in self._services
        }
        while (begin := time.monotonic()) < end:
            with self._lock:
                self._number += 1
                number = self._number
                # Nobody asks the same twice: an import takes that for a reload.
                query = self._content.queries[number % len(self._content.queries)]
                person = f"person {number % _PEOPLE}"
            names = list(connections)
            for name in names if number % 2 else names[::-1]:
                self._search(connections[name], name, phase, number, query, person)
            time.sleep(max(0.0, begin + 1 / _PAIRS_PER_SECOND - time.monotonic()))
        for connection in connections.values():
            connection.close()

    def _search(
        self, connection: http.client.HTTPConnection, name: str, phase: str, number: int,
        query: dict[str, str], person: str,
    ) -> None:  # fmt: skip
        search_id = f"{name}-{number}"
        body = {"query": query["text"], "size": 10, "client": person, "search_id": search_id,
                "columns": {"place": query["place"]}}  # fmt: skip
        start = time.monotonic()
        try:
            connection.request("POST", "/search", json.dumps(body))
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            with self._lock:
                seconds = time.monotonic() - start
                self.searches.append(_Search(name, phase, search_id, seconds, 0))
            return
        seconds = time.monotonic() - start
        page = json.loads(content) if answer.status == 200 else {}
        search = _Search(
            name, phase, search_id, seconds, answer.status, page.get("reranked", False),
            page.get("experiment"),
        )  # fmt: skip
        with self._lock:
            self.searches.append(search)
            if name == _INTERLEAVED and page:
                self._click(query["id"], search_id, [hit["id"] for hit in page["hits"]])

    def _click(self, query: str, search_id: str, documents: list[str]) -> None:
        """Click as people do who look at rank r with probability 1/r and like good documents."""
        with self._events.open("a") as file:
            for rank, document in enumerate(documents, 1):
                grade = self._content.grades.get((query, document), 0)
                if self._random.random() < (0.05 + 0.2 * grade) / rank:
                    event = {"search_id": search_id, "document_id": document, "action": "click",
                             "time": datetime.now(UTC).isoformat()}  # fmt: skip
                    file.write(json.dumps(event) + "\n")


def check_online_faults(report: Report, minutes: float) -> None:
    """Run both services for some minutes of searches, with faults in turn.

    Args:
        report: Where figures go.
        minutes: How long clients search.
    """
    if not installed("opensearch-ltr"):
        report.note("faults: OpenSearch with learning to rank is not installed: see 'make engines'")
        return
    # Its files are read by the engine's user, too.
    with OpenSearchServer(optimized=True) as server, tempfile.TemporaryDirectory() as name:
        _Run(report, server, Path(name)).all(minutes)


class _Run:
    def __init__(self, report: Report, server: OpenSearchServer, folder: Path) -> None:
        self.report, self.server, self.folder = report, server, folder
        self.content = collection(3000, 200)
        self.services = [_Service(each, folder) for each in (_INTERLEAVED, _PLAIN)]
        self.events = folder / "events.jsonl"
        self.events.touch()
        self.clients = _Clients(self.services, self.content, self.events)
        self.kills = self.lost = self.dropped = 0
        self.miscounted: dict[str, int] = {}
        self.failed: Counter[str] = Counter()

    def all(self, minutes: float) -> None:
        """Prepare, search for so long, and report."""
        self._prepare()
        start = time.monotonic()
        try:
            self._restart("new")
            begin = time.monotonic()
            self._phase("after a start", 4.0)
            self._round()
            while time.monotonic() - begin < 60 * minutes:
                self._round()
        finally:
            for service in self.services:
                if service.command is not None:
                    service.command.stop()
        self.report.note(
            f"faults: {(time.monotonic() - start) / 60:.1f} minutes with starts, "
            f"{_CLIENTS} clients, {len(self.clients.searches):,} searches, {_PEOPLE} people"
        )
        self._report()

    def _round(self) -> None:
        """Let all faults come in turn, with searches without a fault before each."""
        assert self.server.process is not None
        for name, fault in (
            ("process killed", self._kill), ("engine frozen", self._freeze),
            ("disk full", self._fill),
        ):  # fmt: skip
            self._phase(_QUIET, _STEP)
            self._phase(name, _FAULT, fault)
            self._settle()
        self._restart("slow")
        self._phase("slow ranker", _FAULT)
        self._restart("new")
        self._phase("after a start", 4.0)
        self._phase(_QUIET, _STEP)

    def _phase(self, name: str, seconds: float, fault: Callable[[], None] | None = None) -> None:
        """Search, then check that what was acknowledged is in the log or counted as dropped."""
        before = {each.name: each.figures() for each in self.services}
        first = len(self.clients.searches)
        self.clients.run(name, seconds, fault)
        for service in self.services:
            service.wait()
            figures = service.figures() - before[service.name]
            dropped = sum(v for k, v in figures.items() if k.startswith("log_dropped_total"))
            ranked, logged = figures["rankings_total"], figures["logged_total"]
            lost = ranked - logged - dropped
            acknowledged = {
                each.search_id for each in self.clients.searches[first:]
                if each.service == service.name and each.reranked
            }  # fmt: skip
            missing = len(acknowledged - _logged_ids(service.log))
            self.dropped += dropped
            if name == "process killed":
                self.lost += lost
                wrong = max(0, missing - lost - dropped)
            else:
                wrong = abs(missing - dropped) + abs(lost)
            self.miscounted[name] = self.miscounted.get(name, 0) + wrong
            if service.name == _INTERLEAVED:
                self.failed[name] += figures['interleaved_total{outcome="failed"}']

    def _settle(self) -> None:
        """Wait until both services rerank again."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            first = len(self.clients.searches)
            self._phase("after a fault", 1.0)
            if all(each.reranked for each in self.clients.searches[first:]):
                return
        raise RuntimeError("searches are not reranked again")

    def _kill(self) -> None:
        time.sleep(1)
        for service in self.services:
            os.kill(service.running.workers()[0], signal.SIGKILL)
            self.kills += 1

    def _freeze(self) -> None:
        assert self.server.process is not None
        time.sleep(1)
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            time.sleep(_FAULT / 2)
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)

    def _fill(self) -> None:
        """Let no file grow: part of a line may be written, as on a disk that is nearly full."""
        limited = []
        for service in self.services:
            size = min(each.stat().st_size for each in service.log.glob("rankings-*"))
            for process in service.running.workers():
                _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
                resource.prlimit(process, resource.RLIMIT_FSIZE, (size + 1000, hard))
                limited.append((process, hard))
        time.sleep(_FAULT / 2)
        for process, hard in limited:
            resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))

    def _restart(self, second: str) -> None:
        for service in self.services:
            if service.command is not None and service.command.stop():
                raise RuntimeError(service.command.log.read_text())
        for service in self.services:
            service.start(second)
        for service in self.services:
            service.wait()

    def _prepare(self) -> None:
        """Index documents, log their features, and train three rankers."""
        folder = self.folder
        address = fill_opensearch(self.server.url, "shop", self.content.documents)
        (folder / "features.toml").write_text(DEFINITIONS)
        definitions = read_definitions(folder / "features.toml")
        queries = self.content.write_queries(folder / "queries.jsonl")
        judgments = read_qrels(self.content.write_qrels(folder / "judgments.qrels"))
        search = feature_search(definitions, "opensearch", address, "shop")
        upload_feature_set(search)
        log_features(
            search, read_queries(queries), folder / "train.parquet", LogSettings(_DEPTH),
            relabel=lambda block: block.relabel(judgments, part=True),
        )  # fmt: skip
        train = read_parquet(folder / "train.parquet", Dataset)
        for name, trees in (("old", 3), ("new", 300)):
            TreeRanker("LambdaMART", n_estimators=trees, min_child_samples=5).fit(train).save(
                folder / f"{name}.podium"
            )
        slow = NeuralRanker("ListNet()", epochs=1, hidden_layer_sizes=_SLOW_LAYERS)
        slow.fit(train.select(np.arange(2))).save(folder / "slow.podium")
        (folder / "os.toml").write_text(
            f'engine = "opensearch"\nurl = "{address}"\ndefinitions = "features.toml"\n'
            f'feature_set = "shop"\ndepth = {_DEPTH}\nmodel = "old"\n'
            f"budget_ms = {1000 * _BUDGET_SECONDS:.0f}\n"
        )
        (folder / "key").write_text("secret of the benchmark")

    def _report(self) -> None:
        searches = self.clients.searches
        phases = list(dict.fromkeys(each.phase for each in searches))
        beside = 0
        for phase in phases:
            counts = {
                name: Counter(
                    "unanswered" if each.status != 200 else "model" if each.reranked else "engine"
                    for each in searches
                    if (each.service, each.phase) == (name, phase)
                )
                for name in (_INTERLEAVED, _PLAIN)
            }
            listed = "; ".join(
                f"{name} {sum(each.values()):,}, unanswered {each['unanswered']:,}, "
                f"in the engine's order {each['engine']:,}"
                for name, each in counts.items()
            )
            failed = self.failed[phase]
            self.report.note(f"faults, {phase}: {listed}; not interleaved for a failure {failed:,}")
            if phase not in _FAILS_ANYWAY:
                beside += counts[_INTERLEAVED]["unanswered"]
                continue
            both = [counts[name]["unanswered"] for name in (_INTERLEAVED, _PLAIN)]
            # If both services fail alike, the difference has at most this standard deviation.
            error = max(1.0, sum(both) ** 0.5)
            self.report.check(f"faults, {phase}: unanswered beyond plain searches, standard errors",
                              (both[0] - both[1]) / error, 4, False, "")  # fmt: skip
        self.report.check("faults: interleaved searches unanswered otherwise", beside, 0, False, "")
        self.report.note(
            f"faults: {self.dropped:,} rankings counted as dropped, {self.lost:,} lost with "
            f"{self.kills:,} killed processes"
        )
        self.report.check("faults: acknowledged searches neither logged nor counted as dropped",
                          sum(self.miscounted.values()), 0, False, "")  # fmt: skip
        self._times(searches)
        self._recounts()

    def _times(self, searches: Sequence[_Search]) -> None:
        seconds: defaultdict[str, list[float]] = defaultdict(list)
        for each in searches:
            if each.phase == _QUIET and each.status == 200:
                seconds[each.service].append(each.seconds)
                if each.experiment is not None:
                    seconds["a draft"].append(each.seconds)
        p95 = {name: float(np.quantile(took, 0.95)) for name, took in seconds.items()}
        for name, took in seconds.items():
            self.report.note(
                f"faults, {_QUIET}, {name}: {len(took):,} searches, p50 "
                f"{1000 * np.median(took):.0f} ms, p95 {1000 * p95[name]:.0f} ms"
            )
        self.report.check("faults: p95 of /search with interleaving over that without",
                          p95[_INTERLEAVED] / p95[_PLAIN], 1.2, False)  # fmt: skip

    def _recounts(self) -> None:
        lines = list(_lines(self.services[0].log))
        names = list(dict.fromkeys(e["experiment"]["id"] for e in lines if "experiment" in e))
        self.report.check("faults: experiments in the log, one for each pair of models",
                          abs(len(names) - 2), 0, False, "")  # fmt: skip
        clicks: defaultdict[str, set[str]] = defaultdict(set)
        for line in self.events.read_text().splitlines():
            event = json.loads(line)
            clicks[event["search_id"]].add(event["document_id"])
        differing = 0
        for name in names:
            own = _recount(lines, clicks, name)
            done = subprocess.run(
                [sys.executable, "-m", "podium", "online", "report", str(self.services[0].log),
                 "--events", str(self.events), "--experiment", name, "--json"],
                stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
            theirs = json.loads(done.stdout)
            fates = {key: count for key, count in theirs["counts"].items() if key != "read"}
            differing += sum(
                (Counter(own) - Counter(fates) + (Counter(fates) - Counter(own))).values()
            )
            differing += abs(theirs["counts"]["read"] - sum(own.values()))
            decisive = own["new preferred"] + own["old preferred"] + own["tied"]
            value = (own["new preferred"] - own["old preferred"]) / decisive
            result = theirs["results"][0]["difference"]
            differing += result["searches"] != decisive or abs(result["value"] - value) > 1e-9
            self.report.note(
                f"faults, {theirs['new']} against {theirs['old']}: preference "
                f"{result['value']:+.3f} of {decisive:,} searches; {dict(own)}"
            )
        self.report.check("faults: searches counted otherwise than in a recount of the log",
                          differing, 0, False, "")  # fmt: skip


def _recount(lines: list[dict[str, Any]], clicks: dict[str, set[str]], name: str) -> Counter[str]:
    """Count who wins each search of an experiment, without the code that is measured."""
    fates: Counter[str] = Counter()
    for line in lines:
        clicked = clicks.get(line["search_id"], set())
        if "experiment" not in line or not any(line["credits"]):
            fates["not interleaved"] += 1
            continue
        if line["experiment"]["id"] != name:
            fates["other experiment"] += 1
            continue
        credit = [
            value
            for document, value in zip(line["shown"], line["credits"], strict=True)
            if document in clicked
        ]
        total = sum(credit)
        if not credit:
            fates["no action"] += 1
        elif not any(credit):
            fates["action on what both would show"] += 1
        else:
            fates["new preferred" if total > 0 else "old preferred" if total else "tied"] += 1
    return fates


def _lines(log: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(log.glob("rankings-*")):
        with gzip.open(path, "rt") as file:
            for line in file:
                yield json.loads(line)


def _logged_ids(log: Path) -> set[str]:
    return {line["search_id"] for line in _lines(log)}
