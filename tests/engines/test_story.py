"""From a running engine to a served ranker: every step of a search team, once, in order.

Candidates come from an engine, two people and a model judge them in the studio, a ranker is
trained on what they said, gated, exported, verified in the engine, served, and watched for drift.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import insert

from benchmarks._chat_endpoint import ChatServer, serve_chat
from benchmarks._serving_processes import served
from podium.data import Dataset, Rankings, read_parquet, read_qrels, read_run
from podium.judging import Endpoint, EndpointAssessor, Outcome
from podium.studio.accounts.service import new_api_token
from podium.studio.client import StudioClient
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.store.tables import Membership
from tests.cli.run_podium import podium
from tests.engines.shop import empty_solr, products
from tests.engines.story_engines import (
    DEFINITIONS,
    DEPTH,
    MODEL,
    InOpenSearch,
    InSolr,
    StoryEngine,
)
from tests.studio.databases import sqlite_with_tables
from tests.studio.factories import make_people
from tests.studio.server import serving

pytestmark = pytest.mark.slow

K = 2
WORDS = ("red", "blue", "running", "walking", "shoe", "boot", "lace", "sole", "trail", "city")
QUERIES = {
    f"{part}{first}{step}": f"{WORDS[first]} {WORDS[(first + step) % 10]}"
    for part, numbers in (("train", range(5)), ("test", range(5, 10)))
    for first in numbers
    for step in (1, 2, 3, 4)
}
PRODUCTS = products()
# What people look for here is what others clicked; the engine's own order does not know it.
CLICKS = {f"{each['title']}\n{each['body']}": each["clicks"] for each in PRODUCTS.values()}


def prefers(one: str, other: str) -> float:
    return CLICKS[one] - CLICKS[other]


def by_person(task) -> str:
    lead = prefers(*(f"{side[0].title}\n{side[0].text}" for side in task.sides))
    return "left" if lead > 0 else "right" if lead < 0 else "tie"


def model_verdict(_query: str, documents: list[str]) -> dict[str, float]:
    lead = prefers(*documents)
    return {"A": float(lead > 0), "B": float(lead < 0), "TIE": float(lead == 0)}


def by_model(endpoint: Endpoint) -> Callable[..., str]:
    words = {Outcome.LEFT: "left", Outcome.RIGHT: "right", Outcome.TIE: "tie"}

    def choose(task) -> str:
        texts = {
            name: f"{side[0].title}\n{side[0].text}"
            for name, side in zip(("left", "right"), task.sides, strict=True)
        }
        assessor = EndpointAssessor(endpoint, query=task.query, texts=texts)
        return words[assessor.outcome("left", "right")]

    return choose


@contextmanager
def studio_of_three(
    folder: Path, engine_url: str
) -> Iterator[tuple[list[StudioClient], Callable[[int], None]]]:
    """A studio that may ask the engine, and three accounts in it."""
    settings = Settings(
        database=sqlite_with_tables(folder / "studio.db"),
        exports=folder / "files",
        engines=[engine_url],
    )
    engine = connect(settings)
    people = make_people(engine, 3, admin=True)
    with serving(settings) as address, ExitStack() as stack:
        clients = []
        for person in people:
            token = in_transaction(
                engine, lambda c, person=person: new_api_token(c, person, "t", 1)
            )
            clients.append(stack.enter_context(StudioClient(address, token)))

        def join(project: int) -> None:
            rows = [
                {"project_id": project, "user_id": each, "role": "assessor"} for each in people[1:]
            ]
            in_transaction(engine, lambda c: c.execute(insert(Membership), rows))

        yield clients, join
    engine.dispose()


def scores(run: Rankings, query: str) -> dict[str, float]:
    ranked = run.select([query])
    return dict(zip(ranked.document_ids.to_pylist(), ranked.scores.tolist(), strict=True))


def done(*arguments: object) -> str:
    ended = podium(*arguments)
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    return ended.stdout.decode()


@pytest.fixture(params=["solr", "opensearch"])
def engine(request: pytest.FixtureRequest) -> Iterator[StoryEngine]:
    if request.param == "opensearch":
        yield InOpenSearch(request.getfixturevalue("opensearch_ltr"), PRODUCTS)
        return
    server = request.getfixturevalue("solr")
    empty_solr(server)
    yield InSolr(server, PRODUCTS)
    empty_solr(server)


def test_from_an_engine_to_a_served_ranker(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("features.toml").write_text(DEFINITIONS)
    for part in ("train", "test"):
        lines = [f"{name}\t{text}\n" for name, text in QUERIES.items() if name.startswith(part)]
        Path(f"{part}.tsv").write_text("".join(lines))

    # Candidates from the engine, judged by two people and a model.
    with ExitStack() as stack:
        clients, join = stack.enter_context(studio_of_three(tmp_path, engine.server))
        ann, bob, robot = clients
        project = ann.create_project("Shop", k=K)
        asked = "".join(f"{name}\t{text}\n" for name, text in QUERIES.items())
        template = json.dumps(engine.candidates["template"])
        result = project.import_from_engine(
            **engine.candidates | {"template": template},
            queries=asked,
            depth=DEPTH,
            text_field="body",
        )
        assert result["added"] == len(QUERIES) == 40
        join(project.id)
        chat = ChatServer(model_verdict)
        endpoint = Endpoint(f"{stack.enter_context(serve_chat(chat))}#tiny", key="", wait=0.01)
        stack.callback(endpoint.close)
        answers = {}
        for name, client, choose, limit in (
            ("ann", ann, by_person, 30),
            ("robot", robot, by_model(endpoint), 30),
            ("bob", bob, by_person, 10_000),
        ):
            judging = client.project(project.id)
            answers[name] = 0
            task = judging.next(wait=0)
            while task is not None and answers[name] < limit:
                answers[name] += 1
                task = judging.answer(task, choose(task), wait=0)
            if task is not None:
                judging.release(task)
        assert answers["ann"] == answers["robot"] == 30
        assert len(chat.requests) == 2 * 30  # both orders of each pair
        assert project.refresh().about["progress"]["share"] == 1
        assert project.preferences().rows == sum(answers.values())
        project.export("labels.qrels", "labels", "qrels", only_done=True)

    # The best of each query is the most clicked of its candidates.
    labels = read_qrels("labels.qrels")
    assert sorted(labels.query_ids.to_pylist()) == sorted(QUERIES)
    for name, text in QUERIES.items():
        judged = labels.select([name])
        pairs = zip(judged.labels.tolist(), judged.document_ids.to_pylist(), strict=True)
        best = max(pairs)[1]
        clicks = {each: PRODUCTS[each]["clicks"] for each in engine.search(text)}
        assert PRODUCTS[best]["clicks"] == max(clicks.values())

    # Features by the engine, a ranker, and a run of each system on queries that it did not see.
    log = (
        "features", "log", "features.toml", "--engine", engine.url, "--depth", DEPTH,
        "--labels", "labels.qrels",
    )  # fmt: skip
    done(*log, "--queries", "train.tsv", "-o", "train.parquet", "--put")
    done(*log, "--queries", "test.tsv", "-o", "test.parquet")
    done("train", "train.parquet", "--scorer", "linear", "--loss", "ListNet()", "--run-dir", "run")
    done("reproduce", "run")
    done("predict", "run/ranker.podium", "test.parquet", "-o", "new.run")
    tests = [name for name in QUERIES if name.startswith("test")]
    with Path("old.run").open("w") as file:
        for name in tests:
            for rank, document in enumerate(engine.search(QUERIES[name]), start=1):
                file.write(f"{name} Q0 {document} {rank} {DEPTH - rank} old\n")
    kept = [
        line for line in Path("labels.qrels").read_text().splitlines() if line.startswith("test")
    ]
    Path("test.qrels").write_text("\n".join(kept) + "\n")

    # The gate: it passes for the better system, and not for the other.
    gate = ("--require", "nDCG@2 > baseline", "-m", "nDCG@2")
    assert podium("compare", "test.qrels", "old.run", "new.run", *gate).returncode == 0
    assert podium("compare", "test.qrels", "new.run", "old.run", *gate).returncode != 0

    # Exported and verified; then the engine itself scores the test's searches.
    done(
        "export", "run/ranker.podium", *engine.target, "--definitions", "features.toml",
        "-o", "export", "--name", MODEL, "--put", engine.models,
    )  # fmt: skip
    assert re.search(r"\b0 of \d+ golden rows off", done("verify", "export"))
    run = read_run("new.run")
    for name in tests:
        found = engine.search(QUERIES[name], model=True)
        assert found == pytest.approx(scores(run, name), rel=1e-5, abs=1e-5)

    # Served before the engine: the order of the run.
    Path("search.toml").write_text(
        f'engine = "{engine.kind}"\nurl = "{engine.url}"\ndefinitions = "features.toml"\n'
        f"depth = {DEPTH}\nbudget_ms = 60000\n"
    )
    ranker = tmp_path / "run/ranker.podium"
    with served(ranker, "--search", "search.toml", "--ranking-log", "logs") as (port, _):
        for name in tests:
            query = {"query": QUERIES[name], "size": DEPTH}
            answer = httpx2.post(
                f"http://127.0.0.1:{port}/search", json=query, trust_env=False, timeout=120
            ).json()
            assert answer["reranked"], answer
            hits = {hit["id"]: hit["score"] for hit in answer["hits"]}
            assert hits == pytest.approx(scores(run, name), rel=1e-5, abs=1e-5)

    # No drift while products are as they were; then everything is clicked more.
    assert "Against training: 0 of 3 features have shifted." in done(
        "drift", "train.parquet", "logs"
    )
    rows = read_parquet("test.parquet", Dataset)
    with served(ranker, "--ranking-log", "later") as (port, _):
        for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True):
            documents = [
                {
                    "id": str(row),
                    "features": dict(
                        zip(
                            rows.feature_names,
                            map(float, rows.features[row] + [0, 0, 1000]),
                            strict=True,
                        )
                    ),
                }
                for row in range(start, stop)
            ]
            body = {"query": str(start), "documents": documents}
            httpx2.post(
                f"http://127.0.0.1:{port}/rank", json=body, trust_env=False, timeout=60
            ).raise_for_status()
    drifted = done("drift", "train.parquet", "later")
    assert "Against training: 1 of 3 features have shifted." in drifted
    assert "clicks" in drifted
