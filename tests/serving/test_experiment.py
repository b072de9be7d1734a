"""Who takes part in an experiment, and what names it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.datastructures import QueryParams

from podium.errors import DataError
from podium.serving.experiment import Experiment, InterleaveSettings
from podium.serving.search_request import parse_search, parse_search_parameters
from tests.cli.run_podium import fail


def experiment(folder: Path, **changes: object) -> Experiment:
    values = {"old": "a", "new": "b", "share": 0.25, **changes}
    return Experiment(InterleaveSettings(**values), folder)  # type: ignore[arg-type]


def test_a_share_of_clients_takes_part_with_all_their_searches(tmp_path: Path) -> None:
    one = experiment(tmp_path)
    clients = [one.takes_part("s", f"client {n}") for n in range(2000)]
    searches = [one.takes_part(f"s{n}", None) for n in range(2000)]
    for values in (clients, searches):
        assert abs(sum(values) - 500) < 4 * (2000 * 0.25 * 0.75) ** 0.5
    for n in range(50):
        assert one.takes_part(f"another {n}", f"client {n}") is clients[n]
    assert all(experiment(tmp_path, share=1.0).takes_part(f"s{n}", None) for n in range(100))


def test_processes_of_a_service_have_one_key_and_services_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        hashes = list(pool.map(lambda _: experiment(folders[0]).hashed("x"), range(16)))
    assert len(set(hashes)) == 1
    assert experiment(folders[1]).hashed("x") != hashes[0]
    assert [each.name for each in folders[0].iterdir()] == ["interleave.key"]
    assert (folders[0] / "interleave.key").stat().st_mode & 0o77 == 0
    key = tmp_path / "key"
    key.write_text("secret\n")
    shared = [experiment(folder, key_file=str(key)).hashed("x") for folder in folders]
    assert shared[0] == shared[1] != hashes[0]
    key.write_text("\n")
    with pytest.raises(DataError, match="has no key"):
        experiment(tmp_path, key_file=str(key))


def test_another_configuration_is_another_experiment(tmp_path: Path) -> None:
    name = experiment(tmp_path).name("1", "2")
    assert name.startswith("team-draft-")
    others = [
        experiment(tmp_path).name("1", "3"), experiment(tmp_path).name("2", "1"),
        experiment(tmp_path, share=0.5).name("1", "2"),
        experiment(tmp_path, method="balanced").name("1", "2"),
    ]  # fmt: skip
    assert len({name, *others}) == 5


def test_pages_of_a_search_fit_together(tmp_path: Path) -> None:
    one = experiment(tmp_path)
    old, new = list(range(20)), list(range(20))[::-1]
    long = one.draft("x", "s", old, new, 20)
    assert one.draft("x", "s", old, new, 7).documents == long.documents[:7]
    assert any(one.draft("x", f"s{n}", old, new, 20) != long for n in range(10))


def test_a_model_that_does_not_end_has_one_thread_and_others_go_on(tmp_path: Path) -> None:
    free, begun = threading.Event(), []

    class Slow:
        def score(self, rows: Any, _pairs: Any) -> Any:
            begun.append(len(rows))
            free.wait(60)
            return np.zeros(len(rows))

    async def ask() -> Any:
        one, model = experiment(tmp_path), Slow()
        clock = asyncio.get_running_loop().time
        waiting = [
            one.score(model, np.zeros((n, 1)), until=clock() + 0.2)  # type: ignore[arg-type]
            for n in (1, 2)
        ]
        late = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in late] == [TimeoutError] * 2
        free.set()
        scores = await one.score(model, np.zeros((3, 1)), until=clock() + 60)  # type: ignore[arg-type]
        one.close()
        return scores

    assert asyncio.run(ask()).tolist() == [0, 0, 0]
    assert begun == [1, 3]


def test_requests_name_clients_and_may_switch_it_off() -> None:
    request = parse_search(b'{"query": "q", "client": "c", "interleave": false}')
    assert (request.client, request.interleave) == ("c", False)
    request = parse_search_parameters(QueryParams("q=q&client=c&interleave=false"))
    assert (request.client, request.interleave) == ("c", False)
    assert parse_search(b'{"query": "q"}').interleave is True


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--interleave", "old,new"), "Add --ranking-log"),
        (("--share", "10%"), "--share is of --interleave"),
        (("--interleave", "old", "--search", "s.toml", "--ranking-log", "l"), "is not a pair"),
        (("--interleave", "old,other", "--search", "s.toml", "--ranking-log", "l"),
         "other is not served"),
        (("--interleave", "new,third", "--search", "s.toml", "--ranking-log", "l"),
         "old ranks all other searches"),
        (("--interleave", "old,new", "--search", "s.toml", "--ranking-log", "l", "--share", "0"),
         "share is 0"),
    ],
)  # fmt: skip
def test_wrong_options_are_explained(
    options: tuple[str, ...], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(
        'engine = "solr"\nurl = "http://localhost:1/solr/x"\ndefinitions = "f.toml"\n'
    )
    models = ("old=o.podium", "new=n.podium", "third=t.podium")
    assert problem in fail("serve", *models, *options)
