"""Requests that nobody should send: none of them is answered as an error of the service."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks._serving_processes import resident_bytes
from podium.serving import ServingSettings
from podium.serving.settings import parse_model
from tests.serving.hostile import hostile_requests, large_requests, post
from tests.serving.service import ADMIN, NAMES, bearer, command, serving, trees, write_tokens

GENERATED = {"short": (30, 225, 200), "full": (1_200, 10_000, 10_000)}
"""Schemathesis's examples per route, how many requests that makes at least, and those of our own:
in CI, and before a release."""
SIZES = ["short", pytest.param("full", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    trees().save(folder / "m.podium")
    with serving(
        ServingSettings(
            models=(parse_model(str(folder / "m.podium")),),
            token_file=write_tokens(folder / "tokens"),
        )
    ) as address:
        yield address


bodies = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(str.encode),
    st.sampled_from([b"[" * 5000, b'{"documents":' * 3000, b"\xff\xfe{}", b'"\\ud800"', b"1" * 99]),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["documents", "inputs", "id", "features", "shape", "data", "name"]),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    ).map(lambda value: json.dumps(value).encode()),
)
paths = st.sampled_from(
    ["/rank", "/rank/m", "/rank/m?version=%00", "/v2/models/m/infer", "/v2/models/%ff/infer",
     "/v2/models/m/versions/1/infer", "/v2/repository/models/m/load", "/v2/repository/index"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=paths, body=bodies, length=st.none() | st.integers(0, 300))
def test_malformed_bodies_are_refused(address, path, body, length):
    headers = bearer(ADMIN)
    if length is not None:
        headers["Inference-Header-Content-Length"] = str(length)
    answer = httpx2.post(address + path, content=body, headers=headers, timeout=60)
    assert answer.status_code < 500, answer.text


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_generated_requests_are_answered_as_described(address, tmp_path, size):
    examples, least, _ = GENERATED[size]
    (tmp_path / "openapi.json").write_text(json.dumps(_with_real_names(address)))
    done = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"), "run", "openapi.json",
            "--url", address, "-H", f"Authorization: Bearer {ADMIN}", "--seed", "1",
            "--phases", "fuzzing", "--max-examples", str(examples),
            "--suppress-health-check", "all", "--request-timeout", "60",
            "--exclude-path-regex", "/unload$",
            "--checks", "not_a_server_error,content_type_conformance,response_schema_conformance",
        ],
        capture_output=True, text=True, cwd=tmp_path, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    generated = int(re.search(r"(\d+) generated", done.stdout)[1])
    assert generated > least
    assert httpx2.get(f"{address}/v2/health/ready", timeout=60).status_code == 200


def _with_real_names(address):
    """The description with the names of what is loaded: others are only ever not found."""
    schema = httpx2.get(f"{address}/openapi.json", headers=bearer(ADMIN), timeout=60).json()
    for operations in schema["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                parameter["schema"] = {"enum": [{"name": "m", "version": "1"}[parameter["name"]]]}
    rank = schema["paths"]["/rank"]["post"]["requestBody"]["content"]["application/json"]
    document = rank["schema"]["properties"]["documents"]["items"]
    document["properties"]["features"] = {
        "type": "object",
        "properties": {name: {"type": ["number", "null"]} for name in NAMES},
        "required": list(NAMES),
        "additionalProperties": False,
    }
    return schema


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_almost_valid_and_large_requests_are_refused_in_bounded_memory(tmp_path, size):
    trees().save(tmp_path / "m.podium")
    count = GENERATED[size][2]
    with command([str(tmp_path / "m.podium")], tmp_path / "log") as service:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        for path, body, headers, expected in large_requests():
            assert (path, post(connection, path, body, headers)[0]) == (path, expected)
        for request in hostile_requests(0, 200):
            post(connection, *request)
        before = resident_bytes(service.process.pid)
        statuses = Counter(post(connection, *request)[0] for request in hostile_requests(1, count))
        after = resident_bytes(service.process.pid)
        connection.close()
        assert not [event for event in service.events() if event["level"] == "error"]
    assert set(statuses) == {200, 400, 403, 404}
    assert statuses[400] > count / 4
    assert before < 600 << 20
    assert after - before < 16 << 20
