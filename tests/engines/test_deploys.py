"""Deploys in running engines: whatever fails, searches go on with the version before."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podium.errors import ArgumentError, DataError, PodiumError
from podium.export import connect_engine, deploy_export, export_ranker, roll_back, verify_export
from podium.export.deployments import delete_stored, switch_version
from podium.export.folder import ExportFolder
from podium.export.live.versions import version_name
from podium.export.writing import ExportSettings
from tests.cli.run_podium import podium
from tests.engines.deploying_processes import DeployingProcesses, deploying_processes
from tests.engines.faulty_proxy import Fault, faulty_proxy
from tests.engines.ranked_shop import RankedExport, RankedShop, ranked_export

pytestmark = pytest.mark.slow

NAMES = (f"shop_{number}" for number in itertools.count())
"""A name for each test, so that none sees what another deployed."""


ENGINES = ["opensearch", "solr 9", pytest.param("solr 8", marks=pytest.mark.long)]
"""Both versions of Solr are reached by the same requests: the older one deploys every time."""


@pytest.fixture(params=ENGINES)
def shop(request: pytest.FixtureRequest) -> Iterator[RankedShop]:
    name = next(NAMES)
    if request.param == "opensearch":
        url = request.getfixturevalue("opensearch_ltr").url
        shop = RankedShop("opensearch", url, "3.8", name, f"{url}/ranked")
    else:
        solr, version = ("solr_9", "9.2") if request.param == "solr 9" else ("solr", "8.11")
        core = request.getfixturevalue(solr).core
        shop = RankedShop("solr", core, version, name, core)
    shop.fill()
    yield shop
    shop.empty()


@pytest.fixture
def old(shop: RankedShop, tmp_path: Path) -> RankedExport:
    return ranked_export(shop, tmp_path / "old", [1.0, 0.2])


@pytest.fixture
def new(shop: RankedShop, tmp_path: Path) -> RankedExport:
    """It has another feature set than the old one."""
    return ranked_export(shop, tmp_path / "new", [0.2, 0.1, 1.0])


@pytest.fixture(scope="module")
def processes() -> Iterator[DeployingProcesses]:
    with deploying_processes() as running:
        yield running


@pytest.mark.parametrize("shop", ["opensearch", "solr 9", "solr 8"], indirect=True)
def test_a_deploy_is_checked_and_then_searches_refer_to_it(shop, old, new):
    engine = shop.engine
    first = deploy_export(old.export, engine)
    assert (first.before, first.live, first.verification.holds) == (None, first.version, True)
    assert shop.search() == old.ranking
    second = deploy_export(new.export, engine)
    assert (second.before, second.live) == (first.version, second.version)
    assert shop.search() == new.ranking != old.ranking
    assert roll_back(shop.name, engine) == first.version
    assert shop.search() == old.ranking
    assert roll_back(shop.name, engine) == second.version
    assert shop.search() == new.ranking
    again = deploy_export(new.export, engine)
    assert (again.before, again.live) == (second.version, second.version)
    assert engine.reference(shop.name).previous == first.version
    switch_version(first.version, engine)
    assert shop.search() == old.ranking


def test_without_a_switch_searches_stay_as_they_are(shop, old, new):
    deploy_export(old.export, shop.engine)
    deployed = deploy_export(new.export, shop.engine, switch=False)
    assert deployed.verification.holds
    assert deployed.live == deployed.before == version_name(old.export)
    assert shop.search() == old.ranking
    switch_version(deployed.version, shop.engine)
    assert shop.search() == new.ranking


def stale_model(shop: RankedShop, export: ExportFolder) -> dict[str, Any]:
    """Return a model with the name of an export's version and the weights turned round."""
    if shop.target == "solr":
        content = export.read_json("model.json")
        weights = content["params"]["weights"]
        content["name"] = version_name(export)
    else:
        content = export.read_json("model.json")
        content["model"]["name"] = version_name(export)
        weights = json.loads(content["model"]["model"]["definition"])
    turned = dict(zip(weights, reversed(weights.values()), strict=True))
    if shop.target == "solr":
        content["params"]["weights"] = turned
    else:
        content["model"]["model"]["definition"] = json.dumps(turned)
    return content


def test_a_version_that_scores_otherwise_does_not_become_live(shop, old, new):
    deploy_export(old.export, shop.engine)
    # The feature set is there, the model is another.
    deploy_export(new.export, shop.engine, switch=False)
    shop.engine.delete(version_name(new.export))
    content = stale_model(shop, new.export)
    if shop.target == "solr":
        shop.request("PUT", f"{shop.url}/schema/model-store", content)
    else:
        name = new.export.read_json("featureset.json")["featureset"]["name"]
        shop.request("POST", f"{shop.url}/_ltr/_featureset/{name}/_createmodel", content)
    deployed = deploy_export(new.export, shop.engine)
    assert not deployed.verification.holds
    assert deployed.live == deployed.before == version_name(old.export)
    assert shop.search() == old.ranking
    done = podium("deploy", "put", new.export.path, shop.url)
    assert done.returncode == 1
    assert f"refer to {version_name(old.export)}, as before" in said(done)


def said(done: Any) -> str:
    return " ".join((done.stdout + done.stderr).decode().split())


def with_unknown_query(shop: RankedShop, ranked: RankedExport, folder: Path) -> ExportFolder:
    unknown: dict[str, Any] = {"no_such_query": {"field": "{{words}}"}}
    if shop.target == "solr":
        feature = "org.apache.solr.ltr.feature.SolrFeature"
        unknown = {"class": feature, "params": {"q": "{!nosuchparser}${words}"}}
    settings = ExportSettings(
        shop.version, shop.name, never_missing=True, extractors={"a": unknown}, golden_rows=12
    )
    return export_ranker(ranked.ranker, shop.target, folder / "unknown", settings)


def test_what_the_engine_refuses_at_search_does_not_become_live(shop, old, tmp_path):
    deploy_export(old.export, shop.engine)
    export = with_unknown_query(shop, old, tmp_path)
    with pytest.raises(DataError, match=r"a search with the model .* fails"):
        deploy_export(export, shop.engine)
    assert shop.search() == old.ranking
    assert shop.engine.stored().leftovers == ()


def test_features_that_are_queries_are_checked_with_the_same_model_on_values(shop, old, tmp_path):
    match: dict[str, Any] = {"constant_score": {"filter": {"match_all": {}}, "boost": 2.0}}
    if shop.target == "solr":
        feature = "org.apache.solr.ltr.feature.SolrFeature"
        match = {"class": feature, "params": {"q": "{!func}2"}}
    settings = ExportSettings(
        shop.version, shop.name, never_missing=True, extractors={"a": match}, golden_rows=12
    )
    export = export_ranker(old.ranker, shop.target, tmp_path / "queries", settings)
    deployed = deploy_export(export, shop.engine)
    assert (deployed.verification.off, deployed.live) == ((), deployed.version)
    assert shop.engine.stored().leftovers == ()
    assert verify_export(export, shop.engine).holds


FAULTS = {
    "too large for a proxy": Fault(413),
    "full disk": Fault(507),
    "error before": Fault(500),
    "error afterwards": Fault(500, passed_on=1.0),
    "killed before": Fault(),
    "killed in the middle": Fault(passed_on=0.5),
    "killed afterwards": Fault(passed_on=1.0),
}


SWITCH = re.compile(r"_scripts/|config/params$")


def check_fault(
    shop: RankedShop, old: RankedExport, new: RankedExport, requests: list[tuple[str, str]],
    number: int, kind: str, processes: DeployingProcesses,
) -> None:  # fmt: skip
    """Let a request of a deployment fail: searches have the old model, and the next try succeeds.

    Only from the switch on they have the new one.
    """
    status = deploy_with_fault(shop, new, number, FAULTS[kind], processes)
    assert status == (-signal.SIGKILL if FAULTS[kind].status is None else 1), (number, kind)
    switch = next(
        count
        for count, (method, path) in enumerate(requests, 1)
        if method != "GET" and SWITCH.search(path)
    )
    is_switched = number > switch or (number == switch and FAULTS[kind].passed_on == 1.0)
    expected = new.ranking if is_switched else old.ranking
    assert shop.search() == expected, (requests[number - 1], kind)
    assert deploy_export(new.export, shop.engine).verification.holds
    assert shop.search() == new.ranking
    forget(shop, old, new)


def deploy_with_fault(
    shop: RankedShop, new: RankedExport, number: int, fault: Fault, processes: DeployingProcesses
) -> int:
    """Deploy in a process of its own whose request of a number fails; return its status."""
    pid, has_started = 0, threading.Event()

    def kill() -> None:
        has_started.wait(60)
        os.kill(pid, signal.SIGKILL)

    act = kill if fault.status is None else (lambda: None)
    with faulty_proxy(shop.url) as proxy:
        proxy.fault = lambda count, _method, _path: (
            Fault(fault.status, fault.passed_on, act) if count == number else None
        )
        pid = processes.start(new.export.path, shop.target, proxy.url)
        has_started.set()
        return processes.wait()


def forget(shop: RankedShop, old: RankedExport, new: RankedExport) -> None:
    """Go back to the old version, and delete all of the new one."""
    switch_version(version_name(old.export), shop.engine)
    delete_stored(version_name(new.export), shop.engine)
    stored = shop.engine.stored()
    for name in [*stored.leftovers, *(each for each, users in stored.feature_sets.items()
                                      if not users)]:  # fmt: skip
        delete_stored(name, shop.engine)


def requests_of_a_deploy(
    shop: RankedShop, old: RankedExport, new: RankedExport
) -> list[tuple[str, str]]:
    with faulty_proxy(shop.url) as proxy:
        deploy_export(new.export, connect_engine(shop.target, proxy.url))
    forget(shop, old, new)
    return proxy.requests


def distinct(requests: list[tuple[str, str]]) -> list[int]:
    """Return the numbers of requests; of those that golden rows repeat, that of the first."""
    return [number for number, each in enumerate(requests, 1) if each not in requests[: number - 1]]


def applicable(method: str) -> list[str]:
    """Reading has no body and changes nothing."""
    return list(FAULTS) if method != "GET" else ["error before", "killed before"]


@pytest.mark.parametrize("shop", ["opensearch", "solr 9"], indirect=True)
def test_whatever_request_fails_searches_have_a_model(shop, old, new, processes):
    """One kind of fault per request that changes something; the next test has all of all."""
    deploy_export(old.export, shop.engine)
    requests = requests_of_a_deploy(shop, old, new)
    for number in distinct(requests):
        kinds = applicable(requests[number - 1][0])
        if len(kinds) < len(FAULTS):
            continue
        check_fault(shop, old, new, requests, number, kinds[number % len(kinds)], processes)


@pytest.mark.long
def test_however_a_request_fails_searches_have_a_model(shop, old, new, processes):
    deploy_export(old.export, shop.engine)
    requests = requests_of_a_deploy(shop, old, new)
    for number in distinct(requests):
        for kind in applicable(requests[number - 1][0]):
            check_fault(shop, old, new, requests, number, kind, processes)


def test_who_switches_second_is_refused(shop, old, new, tmp_path):
    """Both read what is live, and upload; while one is checked, the other one switches."""
    third = ranked_export(shop, tmp_path / "third", [0.1, 1.0])
    deploy_export(old.export, shop.engine)
    with faulty_proxy(shop.url) as proxy:
        entered = threading.Event()

        def meanwhile(_number: int, _method: str, path: str) -> Fault | None:
            if ("_bulk" in path or "select" in path) and not entered.is_set():
                entered.set()
                deploy_export(third.export, shop.engine)
            return None

        proxy.fault = meanwhile
        with pytest.raises(DataError, match=f"somebody else switched '{shop.name}' meanwhile"):
            deploy_export(new.export, connect_engine(shop.target, proxy.url))
    assert shop.search() == third.ranking
    assert {*shop.engine.stored().versions} >= {version_name(new.export)}
    switch_version(version_name(new.export), shop.engine)
    assert shop.search() == new.ranking


def test_two_who_switch_at_once_leave_a_model(shop, old, new, tmp_path):
    """Nothing is locked between the last look and the request: the second one wins.

    Solr counts the changes, so there it is noticed.
    """
    third = ranked_export(shop, tmp_path / "third", [0.1, 1.0])
    deploy_export(old.export, shop.engine)
    deploy_export(third.export, shop.engine, switch=False)
    with faulty_proxy(shop.url) as proxy:

        def meanwhile(_number: int, method: str, path: str) -> Fault | None:
            if method != "GET" and re.search("_scripts/|config/params$", path):
                switch_version(version_name(third.export), shop.engine)
            return None

        proxy.fault = meanwhile
        with (
            suppress(DataError)
            if shop.target != "solr"
            else pytest.raises(DataError, match="somebody else switched")
        ):
            deploy_export(new.export, connect_engine(shop.target, proxy.url))
    assert shop.search() == new.ranking
    assert shop.engine.reference(shop.name).previous == version_name(old.export)


@pytest.mark.parametrize("held", ["delete", "switch"])
def test_a_delete_and_a_switch_at_once_leave_a_model(shop, old, new, held):
    """Both have looked; before the request of the one is passed on, the other one is done."""
    version = version_name(new.export)
    deploy_export(old.export, shop.engine)
    deploy_export(new.export, shop.engine, switch=False)
    first, second = switch_version, delete_stored
    path = "_scripts/|config/params$"
    if held == "delete":
        first, second = second, first
        path = "_ltr/_model/|schema/model-store/"
    with faulty_proxy(shop.url) as proxy:
        entered = threading.Event()

        def meanwhile(_number: int, method: str, requested: str) -> Fault | None:
            if method != "GET" and re.search(path, requested) and not entered.is_set():
                entered.set()
                second(version, shop.engine)
            return None

        proxy.fault = meanwhile
        with pytest.raises(DataError, match=f"refer to {version_name(old.export)} again"):
            first(version, connect_engine(shop.target, proxy.url))
    assert entered.is_set()
    assert shop.search() == old.ranking
    assert version not in shop.engine.stored().versions


def test_what_is_in_use_is_not_deleted(shop, old, new):
    deploy_export(old.export, shop.engine)
    deploy_export(new.export, shop.engine)
    version = version_name(new.export)
    with pytest.raises(ArgumentError, match=f"searches refer to {version}"):
        delete_stored(version, shop.engine)
    [feature_set] = [
        name for name, users in shop.engine.stored().feature_sets.items() if version in users
    ]
    with pytest.raises(ArgumentError, match=f"{feature_set} is used by .*{version}"):
        delete_stored(feature_set, shop.engine)
    assert shop.search() == new.ranking
    delete_stored(version_name(old.export), shop.engine)
    with pytest.raises(DataError, match="has no "):
        roll_back(shop.name, shop.engine)
    with pytest.raises(DataError, match="has no "):
        delete_stored(version_name(old.export), shop.engine)
    assert shop.search() == new.ranking


HOSTILE = [
    "", "*", "_all", "../_all", "podium-*", "podium-shop-1a2b3c4d5e6f/..", "a" * 300,
    "podium-shop-1a2b3c4d5e6f,other", "podium-shop-1A2B3C4D5E6F", "podium-shop-1a2b3c4d5e6f\n",
    "podium-shop-1a2b3c4d5e6f?x=1", "podium-sh%6fp-1a2b3c4d5e6f", "podium-\u0441hop-1a2b3c4d5e6f",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_are_not_podiums_reach_no_request(linear_shop, name):
    with faulty_proxy(linear_shop.url) as proxy:
        engine = connect_engine(linear_shop.target, proxy.url)
        for act in (delete_stored, switch_version):
            with pytest.raises(DataError, match="is not the name of a version"):
                act(name, engine)
        if name != "podium-shop-1A2B3C4D5E6F":  # that is a name, if of no version
            with pytest.raises(DataError, match="is not a name that engines take"):
                roll_back(name, engine)
            assert proxy.requests == []


@pytest.fixture
def linear_shop() -> RankedShop:
    """A shop whose engine is never reached."""
    return RankedShop("opensearch", "http://127.0.0.1:1", "3.8", "shop", "")


def test_what_others_named_alike_is_not_touched(shop, old):
    """A stored script or request parameters of somebody else."""
    if shop.target == "solr":
        parameters = {"set": {shop.name: {"defType": "edismax"}}}
        shop.request("POST", f"{shop.url}/config/params", parameters)
        message = "request parameters .* that are not Podium's"
    else:
        script = {"script": {"lang": "mustache", "source": '{"query": {"match_all": {}}}'}}
        shop.request("PUT", f"{shop.url}/_scripts/{shop.name}", script)
        message = "is not a search template of Podium"
    with pytest.raises(DataError, match=message):
        deploy_export(old.export, shop.engine)
    assert version_name(old.export) not in shop.engine.stored().versions


def test_what_users_add_to_the_reference_stays(shop, old, new):
    deploy_export(old.export, shop.engine)
    if shop.target == "solr":
        change = {"update": {shop.name: {"fq": "a:[10 TO *]"}}}
        shop.request("POST", f"{shop.url}/config/params", change)
    else:
        path = f"{shop.url}/_scripts/{shop.name}"
        source = shop.request("GET", path)["script"]["source"]
        few = '"post_filter": {"range": {"a": {"gte": 10}}}, "query": '
        source = source.replace('"query": ', few, 1)
        shop.request("PUT", path, {"script": {"lang": "mustache", "source": source}})
    few = shop.search()
    assert few == [each for each in old.ranking if each in few] != old.ranking
    deploy_export(new.export, shop.engine)
    assert shop.search() == [each for each in new.ranking if each in few]
    roll_back(shop.name, shop.engine)
    assert shop.search() == few


def test_what_a_killed_check_leaves_is_listed_and_deleted(shop, old, new, processes):
    deploy_export(old.export, shop.engine)
    requests = requests_of_a_deploy(shop, old, new)
    number = next(
        number
        for number, (method, path) in enumerate(requests, 1)
        if re.search("_bulk|select.distrib", path) and method == "POST"
    )
    assert deploy_with_fault(shop, new, number, Fault(), processes) == -signal.SIGKILL
    done = podium("deploy", "list", shop.url)
    leftovers = shop.engine.stored().leftovers
    assert leftovers
    assert all(name in done.stdout.decode() for name in leftovers)
    assert podium("deploy", "delete", shop.url, *leftovers).returncode == 0
    assert shop.engine.stored().leftovers == ()
    assert shop.search() == old.ranking


@pytest.mark.parametrize("shop", ["solr 9"], indirect=True)
def test_documents_that_a_killed_check_leaves_are_listed_and_deleted(shop, old, processes):
    """In an empty collection of Solr golden rows are documents, which searches would find."""
    shop.empty()
    with faulty_proxy(shop.url) as proxy:
        deploy_export(old.export, connect_engine(shop.target, proxy.url), switch=False)
    number = next(n for n, (_, path) in enumerate(proxy.requests, 1) if "update?" in path)
    version = version_name(old.export)
    delete_stored(version, shop.engine)
    killed = deploy_with_fault(shop, old, number + 1, Fault(), processes)
    assert killed == -signal.SIGKILL
    everything = f"{shop.url}/select?q=*:*&rows=0"
    assert shop.request("GET", everything)["response"]["numFound"] > 0
    [left] = shop.engine.stored().leftovers
    delete_stored(left, shop.engine)
    assert shop.engine.stored().leftovers == ()
    assert shop.request("GET", everything)["response"]["numFound"] == 0


def test_the_commands_deploy_list_switch_roll_back_and_delete(shop, old, new):
    done = podium("deploy", "put", old.export.path, shop.url)
    assert done.returncode == 0, done.stderr
    first, second = version_name(old.export), version_name(new.export)
    assert f"Searches for {shop.name} refer to it now." in said(done)
    assert ("useParams=" if shop.target == "solr" else "_search/template") in said(done)
    assert "Each shard reranks" in said(done)
    done = podium("deploy", "put", new.export.path, shop.url, "--no-switch")
    assert f"Searches for {shop.name} refer to {first}, as before." in said(done)
    assert shop.search() == old.ranking
    assert podium("deploy", "switch", shop.url, second).returncode == 0
    assert shop.search() == new.ranking
    listed = json.loads(podium("deploy", "list", shop.url, "--json").stdout)
    assert {"name": shop.name, "live": second, "previous": first} in listed["references"]
    assert {first, second} <= {*listed["versions"]}
    lines = podium("deploy", "list", shop.url).stdout.decode().splitlines()
    states = {tuple(line.split("\t")) for line in lines}
    assert {("version", second, "live"), ("version", first, "previous")} <= states
    done = podium("deploy", "delete", shop.url, second)
    assert (done.returncode, f"searches refer to {second}" in said(done)) == (2, True)
    done = podium("deploy", "rollback", shop.url, shop.name)
    assert f"refer to {first} again" in said(done)
    assert shop.search() == old.ranking
    assert podium("deploy", "delete", shop.url, second).returncode == 0
    shop.engine.delete(first)  # as somebody might by hand
    done = podium("deploy", "list", shop.url)
    assert done.returncode == (0 if first not in said(done) else 2)


def test_solr_that_cannot_save_a_model_keeps_those_that_it_has(solr_9, tmp_path):
    """It forgets them, and is asked to read them again."""
    shop = RankedShop("solr", solr_9.core, "9.2", next(NAMES), solr_9.core)
    shop.fill()
    old = ranked_export(shop, tmp_path / "old", [1.0, 0.2])
    new = ranked_export(shop, tmp_path / "new", [0.2, 1.0])
    deploy_export(old.export, shop.engine)
    saved = solr_9.folder / "rows/conf/_schema_model-store.json"
    saved.chmod(0o444)
    try:
        with pytest.raises(PodiumError, match="status 500"):
            deploy_export(new.export, shop.engine)
        assert shop.search() == old.ranking
    finally:
        saved.chmod(0o644)
        shop.empty()
