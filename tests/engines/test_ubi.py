"""UBI's indices of a real OpenSearch, with UBI's own mappings, are imported like its files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from podium.clicks import ClickLog, import_clicks
from podium.clicks.fetching import fetch_ubi
from podium.export.live.http_client import EngineClient
from tests.cli.run_podium import succeed
from tests.data.shared_files import shared

pytestmark = pytest.mark.slow
SAMPLE = "clicks/chorus-ubi/ubi_queries_events.ndjson.gz"


@pytest.fixture(scope="module")
def ubi(opensearch: Any) -> Any:
    folder = shared("clicks/chorus-ubi")
    with httpx2.Client(base_url=opensearch.url, trust_env=False, timeout=120) as client:
        for name in ("queries", "events"):
            client.delete(f"/ubi_{name}")
            mapping = json.loads((folder / f"{name}-mapping.json").read_text())
            settings = {"number_of_shards": 2, "number_of_replicas": 0}
            client.put(
                f"/ubi_{name}", json={"settings": settings, "mappings": mapping}
            ).raise_for_status()
        answer = client.post(
            "/_bulk?refresh=true",
            content=gzip.decompress(shared(SAMPLE).read_bytes()),
            headers={"content-type": "application/x-ndjson"},
        )
        assert not answer.json()["errors"]
        yield opensearch.url
        for name in ("queries", "events"):
            client.delete(f"/ubi_{name}").raise_for_status()


class Killed(Exception):
    """What ends a fetch between two pages."""


class Dying:
    """An engine whose client is killed after some requests."""

    def __init__(self, client: EngineClient, requests: int) -> None:
        self.client, self.left = client, requests

    def request(self, *arguments: Any, **options: Any) -> tuple[int, Any]:
        self.left -= 1
        if self.left < 0:
            raise Killed
        return self.client.request(*arguments, **options)


def content(path: Path) -> list[str]:
    records = map(json.loads, path.read_text().splitlines())
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def test_the_index_is_imported_as_the_file_is(ubi: str, tmp_path: Path) -> None:
    printed = json.loads(succeed("clicks", "import", ubi, "-o", tmp_path / "engine", "--json"))
    log = import_clicks(shared(SAMPLE), tmp_path / "file")
    del log.counts["records"]["bulk action line"]  # type: ignore[attr-defined]
    assert printed["counts"]["shown"] == log.counts["shown"]
    assert printed["counts"]["actions"] == log.counts["actions"]
    assert printed["counts"]["records"] | {"read": 0} == dict(log.counts["records"]) | {"read": 0}
    assert ClickLog.open(tmp_path / "engine").clicks == log.clicks


def test_a_fetch_that_was_killed_goes_on(ubi: str, tmp_path: Path) -> None:
    with EngineClient(ubi, "OpenSearch") as client:
        whole = content(fetch_ubi(client, tmp_path / "whole", page=500))
        assert len(whole) == 473 + 3448
        for requests in (0, 1, 3, 6):
            with pytest.raises(Killed):
                fetch_ubi(Dying(client, requests), tmp_path / "part", page=500)
        before = json.loads((tmp_path / "part/fetched.json").read_bytes())
        assert 0 < before["records"] < len(whole)
        with (tmp_path / "part/fetched.ndjson").open("ab") as file:
            file.write(b'{"query_id": "half a pa')
        assert content(fetch_ubi(client, tmp_path / "part", page=500)) == whole
        (tmp_path / "part/fetched.ndjson").unlink()
        assert content(fetch_ubi(client, tmp_path / "part")) == whole


def test_a_point_in_time_that_is_over_does_not_matter(ubi: str, tmp_path: Path) -> None:
    with EngineClient(ubi, "OpenSearch") as client:
        with pytest.raises(Killed):
            fetch_ubi(Dying(client, 7), tmp_path, page=500)
        state = json.loads((tmp_path / "fetched.json").read_bytes())
        client.request("DELETE", "_search/point_in_time", {"pit_id": [state["pit"]]})
        assert len(content(fetch_ubi(client, tmp_path, page=500))) == 473 + 3448
