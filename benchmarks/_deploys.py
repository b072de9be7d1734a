"""Deploys and rollbacks while a client searches by what is deployed, with faults in between.

Every search must be answered, by exactly the version that was live before or after it. Requests of
deployments are refused (413 as by a proxy, 507 as by a full disk, 500), their answers are lost, and
the process that deploys is killed.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2
import numpy as np

from benchmarks._report import Report
from podium.errors import PodiumError
from podium.export import connect_engine, deploy_export, roll_back
from podium.export.deployments import delete_stored, switch_version
from podium.export.live.versions import version_name
from tests.engines.deploying_processes import DeployingProcesses, deploying_processes
from tests.engines.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from tests.engines.install import installed
from tests.engines.ranked_shop import RankedExport, RankedShop, ranked_export
from tests.engines.servers import OpenSearchServer, Server, Solr9Server

_FAULTS = {
    "413": Fault(413),
    "507": Fault(507),
    "500": Fault(500),
    "lost answer": Fault(500, passed_on=1.0),
    "killed before": Fault(),
    "killed in the middle": Fault(passed_on=0.5),
    "killed afterwards": Fault(passed_on=1.0),
}
_WEIGHTS = ([1.0, 0.2], [0.2, 1.0], [0.2, 0.1, 1.0], [1.0, 0.1, 0.6])
"""Those with three have another feature set."""
_PAUSE = 0.005
"""Between two searches: the client is in the process that deploys."""


@dataclass
class _Searches:
    """What a client that searches all the time was answered.

    Attributes:
        live: The versions that may be live, over time: a search may see any that was one while it
            ran.
        answers: How many searches were answered.
        failed: The errors of those that were not.
        others: How many answers are the ranking of no version that may have been live.
        longest: The longest time of a search, in seconds.
    """

    shop: RankedShop
    rankings: dict[str, list[str]]
    live: list[frozenset[str]] = field(default_factory=list)
    answers: int = 0
    failed: list[str] = field(default_factory=list)
    others: int = 0
    longest: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with httpx2.Client(trust_env=False, timeout=120) as client:
            while not self.stopped.is_set():
                first = len(self.live) - 1
                start = time.perf_counter()
                try:
                    ranking = self.shop.search(client)
                except Exception as error:  # whatever it is, the search has no answer
                    self.failed.append(repr(error)[:300])
                    self.stopped.wait(_PAUSE)
                    continue
                self.longest = max(self.longest, time.perf_counter() - start)
                self.answers += 1
                allowed = frozenset[str]().union(*self.live[first:])
                self.others += ranking not in [self.rankings[each] for each in allowed]
                self.stopped.wait(_PAUSE)


def check_deploys(report: Report, quick: bool) -> None:
    """Deploy and roll back under load in Solr and, at full size, in OpenSearch."""
    servers: list[tuple[str, str, type[Server]]] = [("Solr 9", "solr-9", Solr9Server)]
    if not quick:
        servers.append(("OpenSearch", "opensearch-ltr", OpenSearchServer))
    else:
        report.note("deploys in OpenSearch are left out: it takes too long to start")
    for name, needs, server in servers:
        if not installed(needs):
            report.note(f"{name} is not installed, no deploys there: see 'make engines'")
            continue
        with server() as running:
            _check_engine(report, name, _shop(running), 4 if quick else 100)


def _shop(server: Server) -> RankedShop:
    if isinstance(server, Solr9Server):
        return RankedShop("solr", server.core, "9.2", "shop", server.core)
    return RankedShop("opensearch", server.url, "3.8", "shop", f"{server.url}/ranked")


def _check_engine(report: Report, name: str, shop: RankedShop, rounds: int) -> None:
    shop.fill()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        exports = {
            version_name(each.export): each
            for number, weights in enumerate(_WEIGHTS)
            for each in [ranked_export(shop, folder / str(number), weights)]
        }
        searches = _Searches(shop, {version: each.ranking for version, each in exports.items()})
        rankings = {tuple(ranking) for ranking in searches.rankings.values()}
        what = f"{name}: versions that rank differently"
        report.check(what, len(rankings), len(_WEIGHTS), unit="")
        deploys = _Deploys(
            shop, exports, searches,
            stack.enter_context(faulty_proxy(shop.url)), stack.enter_context(deploying_processes()),
        )  # fmt: skip
        deploys.deploy_first()
        client = threading.Thread(target=searches.run, daemon=True)
        client.start()
        try:
            for _ in range(rounds):
                deploys.round()
        finally:
            searches.stopped.set()
            client.join(120)
    counts = ", ".join(f"{number} {what}" for what, number in sorted(deploys.counts.items()))
    report.note(
        f"{name}, deploys under load: {counts}; {searches.answers:,} searches, the longest took "
        f"{searches.longest:.2f} s"
    )
    for error in searches.failed[:3]:
        report.note(f"{name}: {error}")
    what = f"{name}, {rounds} deploys and {rounds} rollbacks with faults in between"
    report.check(f"{what}: searches per deploy", searches.answers / rounds, 1, unit="")
    for kind, count in (
        ("failed searches", len(searches.failed)),
        ("answers of a version that is not live", searches.others),
        ("deploys that did not end as they should", deploys.wrong),
    ):
        report.check(f"{what}: {kind}", count, 0, at_least=False, unit="")


class _Deploys:
    """Deploys versions in turn; what is live is written down before and after each switch."""

    def __init__(
        self,
        shop: RankedShop,
        exports: dict[str, RankedExport],
        searches: _Searches,
        proxy: FaultyProxy,
        processes: DeployingProcesses,
    ) -> None:
        self._shop, self._exports, self._searches = shop, exports, searches
        self._proxy, self._processes = proxy, processes
        self._random = np.random.default_rng(7)
        self._engine = connect_engine(shop.target, shop.url)
        self._requests = 0
        self.counts: Counter[str] = Counter()
        self.wrong = 0

    def deploy_first(self) -> None:
        """Deploy a version, and count the requests of deploying another one."""
        first, second = list(self._exports)[:2]
        deploy_export(self._exports[first].export, self._engine)
        proxied = connect_engine(self._shop.target, self._proxy.url)
        deploy_export(self._exports[second].export, proxied)
        self._requests = len(self._proxy.requests)
        self._set_live({second})

    def round(self) -> None:
        """Deploy another version with a fault, then without one; roll back; delete one."""
        live = self._live()
        new = str(self._random.choice([each for each in self._exports if each != live]))
        self._forget(new, live)
        self._deploy_with_fault(new, live)
        if self._live() != new:
            self._set_live({live, new})
            deployment = deploy_export(self._exports[new].export, self._engine)
            self.wrong += deployment.live != new
            self._set_live({new})
        self.counts["deploys"] += 1
        self._set_live({live, new})
        self.wrong += roll_back(self._shop.name, self._engine) != live
        self._set_live({live})
        self.counts["rollbacks"] += 1
        self._set_live({live, new})
        switch_version(new, self._engine)
        self._set_live({new})

    def _live(self) -> str:
        live = self._engine.reference(self._shop.name).live
        assert live is not None
        return live

    def _set_live(self, versions: set[str]) -> None:
        self._searches.live.append(frozenset(versions))

    def _forget(self, new: str, live: str) -> None:
        """Delete a version, and try to delete the one that is live."""
        try:
            delete_stored(live, self._engine)
            self.wrong += 1
        except PodiumError:
            self.counts["refused deletions"] += 1
        stored = self._engine.stored()
        unused = [each for each, users in stored.feature_sets.items() if users in ((), (new,))]
        present = [new] if new in stored.versions else []
        for name in [*present, *unused, *stored.leftovers]:
            delete_stored(name, self._engine)
            self.counts["deletions"] += 1

    def _deploy_with_fault(self, new: str, live: str) -> None:
        kind = str(self._random.choice(list(_FAULTS)))
        number = int(self._random.integers(1, self._requests + 1))
        fault, pid, has_started = _FAULTS[kind], [0], threading.Event()
        begun = len(self._proxy.requests)
        switch: list[int] = []

        def kill() -> None:
            has_started.wait(60)
            os.kill(pid[0], signal.SIGKILL)

        def faulty(count: int, method: str, path: str) -> Fault | None:
            if method != "GET" and re.search(r"_scripts/|config/params$", path):
                switch.append(count)
            if count != begun + number:
                return None
            return replace(fault, act=kill) if fault.status is None else fault

        self._proxy.fault = faulty
        self._set_live({live, new})
        export = self._exports[new].export
        pid[0] = self._processes.start(export.path, self._shop.target, self._proxy.url)
        has_started.set()
        status = self._processes.wait()
        reached = len(self._proxy.requests) >= begun + number
        self._proxy.fault = _no_fault
        now = self._live()
        self._set_live({now})
        self.counts[f"faults ({kind})" if reached else "deploys before a fault"] += 1
        expected = 0 if not reached else -signal.SIGKILL if fault.status is None else 1
        self.wrong += status != expected or now not in ({live, new} if switch else {live})


def _no_fault(_number: int, _method: str, _path: str) -> None:
    return None
