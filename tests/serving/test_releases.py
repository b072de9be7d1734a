"""Models are replaced as a whole, and only by models that can be served."""

from __future__ import annotations

import signal

import httpx2
import numpy as np
import pytest

from podium.errors import DataError
from podium.rankers import LinearRanker
from podium.serving import ServingSettings
from podium.serving.refusal import Refusal
from podium.serving.repository import Repository
from podium.serving.settings import parse_model
from podium.serving.tokens import Tokens
from tests.serving.service import (
    ADMIN,
    bearer,
    command,
    linear,
    rank_body,
    rows,
    serving,
    trees,
    write_tokens,
)


@pytest.fixture
def file(tmp_path):
    trees().save(tmp_path / "m.podium")
    return tmp_path / "m.podium"


def repository(file, tmp_path, **settings):
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    return Repository(ServingSettings(models=(parse_model(str(file)),), **settings), state)


def scores(model):
    return model.score(rows()[:5])


def test_a_broken_file_changes_nothing(file, tmp_path):
    first = repository(file, tmp_path)
    first.reload()
    before = first.get()
    file.write_bytes(b"PK, but not a ranker")
    with pytest.raises(DataError, match=r"m\.podium: is not a saved ranker"):
        first.reload()
    assert first.get() is before
    # A process that starts now serves the last release, not the file.
    other = repository(file, tmp_path)
    other.apply()
    np.testing.assert_array_equal(scores(other.get()), scores(before))


def test_a_release_reaches_other_processes(file, tmp_path):
    first, other = repository(file, tmp_path), repository(file, tmp_path)
    first.reload()
    other.apply()
    kept = other.get()
    trees(-1.0).save(file)
    release = first.reload()
    assert other.get() is kept
    other.apply()
    assert (release.generation, other.generation) == (2, 2)
    assert other.get().digest == first.get().digest != kept.digest
    np.testing.assert_allclose(scores(other.get()), trees(-1.0)._predict(rows()[:5]), atol=1e-6)


def test_only_models_of_the_last_two_releases_are_kept(file, tmp_path):
    models = repository(file, tmp_path)
    digests = []
    for ranker in (trees(), trees(-1.0), linear()):
        ranker.save(file)
        models.reload()
        digests.append(models.get().digest)
    kept = {path.stem for path in (tmp_path / "state").glob("*.model")}
    assert kept == set(digests[1:])


def test_an_unchanged_model_is_not_loaded_again(file, tmp_path):
    models = repository(file, tmp_path)
    models.reload()
    before = models.get()
    models.reload()
    assert models.get() is before


def test_unloading(file, tmp_path):
    models = repository(file, tmp_path)
    models.reload()
    models.unload("m")
    assert not models.ready
    with pytest.raises(Refusal, match="'m' is not loaded"):
        models.get()
    models.reload()  # SIGHUP does not load what was unloaded
    assert not models.ready
    models.reload(["m"])
    assert models.ready


def test_a_shadow_must_have_the_features_of_its_model(file, tmp_path):
    other = LinearRanker().fit([[1.0], [2.0]], [0, 1], group=[2])
    other.save(tmp_path / "other.podium")
    shadows = (parse_model(f"m={tmp_path / 'other.podium'}"),)
    with pytest.raises(DataError, match="the shadow of m has other features"):
        repository(file, tmp_path, shadows=shadows).reload()


def test_a_linear_ranker_has_no_missing_values(tmp_path):
    linear().save(tmp_path / "m.podium")
    with pytest.raises(DataError, match="m takes no missing values"):
        repository(tmp_path / "m.podium", tmp_path, absent={"age": None}).reload()


@pytest.mark.parametrize(
    "line", ["abc reader", "00" * 31 + " reader", "00" * 32, "00" * 32 + " reader root"]
)
def test_malformed_token_files_name_the_line(tmp_path, line):
    (tmp_path / "tokens").write_text(f"# first\n{line}\n")
    with pytest.raises(DataError, match=r"tokens, line 2: is not the SHA-256"):
        Tokens.read(str(tmp_path / "tokens"))


def test_a_load_over_http_serves_the_new_file(file, tmp_path):
    settings = ServingSettings(
        models=(parse_model(str(file)),), token_file=write_tokens(tmp_path / "tokens")
    )
    body = rank_body(rows()[:10])
    with serving(settings) as address:
        headers = bearer(ADMIN)
        before = httpx2.post(f"{address}/rank", json=body, headers=headers, timeout=60).json()
        trees(-1.0).save(file)
        load = f"{address}/v2/repository/models/m/load"
        assert httpx2.post(load, headers=headers, timeout=60).json() == {"generation": 2}
        after = httpx2.post(f"{address}/rank", json=body, headers=headers, timeout=60).json()
        file.write_bytes(b"broken")
        answer = httpx2.post(load, headers=headers, timeout=60)
        assert answer.status_code == 400
        assert "neither a saved ranker nor a model" in answer.json()["error"]
        last = httpx2.post(f"{address}/rank", json=body, headers=headers, timeout=60).json()
        lines = httpx2.get(f"{address}/metrics", headers=headers, timeout=60).text.splitlines()
    expected = np.sort(-trees(-1.0)._predict(rows()[:10]))
    np.testing.assert_allclose([-each["score"] for each in after["ranking"]], expected, atol=1e-6)
    assert before["sha256"] != after["sha256"]
    assert {**last, "search_id": after["search_id"]} == after
    assert 'podium_serving_loads_total{outcome="failed"} 1.0' in lines


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_one_process_ends_with_status_0_and_leaves_nothing(file, tmp_path, monkeypatch, number):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    with command([str(file)], tmp_path / "log") as service:
        assert len(list((tmp_path / "temporary").glob("podium-serving-*"))) == 1
        service.signal(number)
        assert service.process.wait(60) == 0
    assert list((tmp_path / "temporary").glob("podium-serving-*")) == []
    assert [event["event"] for event in service.events()][-1] == "stopped"


@pytest.mark.slow
def test_two_processes_reload_at_sighup_and_end_at_sigterm(file, tmp_path):
    body = rank_body(rows()[:10])
    with command([str(file), "--workers", "2"], tmp_path / "log") as service:
        service.wait_for_event("ready", 2)
        before = httpx2.post(f"{service.address}/rank", json=body, timeout=60).json()
        trees(-1.0).save(file)
        service.signal(signal.SIGHUP)
        service.wait_for_event("models loaded")
        # Each connection may reach the other process; wait until both have the release.
        deadline = 50
        digests = set()
        for _ in range(deadline):
            digests = {
                httpx2.post(f"{service.address}/rank", json=body, timeout=60).json()["sha256"]
                for _ in range(20)
            }
            if len(digests) == 1 and before["sha256"] not in digests:
                break
        metrics = httpx2.get(f"{service.address}/metrics", timeout=60).text
        assert service.stop() == 0
    assert before["sha256"] not in digests
    assert len(digests) == 1
    # The figures of both processes together: requests before the reload and after it.
    count = next(
        float(line.rpartition(" ")[2])
        for line in metrics.splitlines()
        if line.startswith('podium_serving_rankings_total{model="m"')
    )
    assert (count - 1) % 20 == 0
    assert [event["event"] for event in service.events()].count("stopped") == 2
