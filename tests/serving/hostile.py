"""Requests that are almost valid: seeded changes of valid ones, and some that are large."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tests.serving.service import NAMES

NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e39", "1e-400", "0.1e", "--1", '"1"', "true",
           "null", "[]", "{}", "9" * 400, "-0", "1.5")  # fmt: skip


def hostile_requests(seed: int, count: int) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """Yield paths, bodies and headers."""
    rng = random.Random(seed)
    for _ in range(count):
        make = rng.choice([_rank, _rank, _infer, _infer, _binary, _bytes])
        yield make(rng)


def large_requests() -> Iterator[tuple[str, bytes, dict[str, str], int]]:
    """Yield requests at the limits and beyond them, with the status that each must have."""
    for documents, status in ((10_000, 200), (10_001, 400)):
        features = dict.fromkeys(NAMES, 0.5)
        body = {"documents": [{"id": row, "features": features} for row in range(documents)]}
        yield "/rank", json.dumps(body).encode(), {}, status
        tensor = _tensor([documents, len(NAMES)], [0.5] * documents * len(NAMES))
        yield "/v2/models/m/infer", json.dumps({"inputs": [tensor]}).encode(), {}, status
    for path in ("/rank", "/v2/models/m/infer"):
        yield path, b" " * 100_000_000, {}, 413
        yield path, b"[" * (8 << 20), {}, 400


def post(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes]:
    """Send a request; a service may close the connection before it has read a body."""
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.getheader("connection") == "close" or answer.status == 413:
        connection.close()
    return answer.status, content


def _rank(rng: random.Random) -> tuple[str, bytes, dict[str, str]]:
    names = list(NAMES)
    change = rng.randrange(6)
    if change == 0:
        names[rng.randrange(len(names))] = rng.choice(
            ["", "BM25", "bm25 ", "\\u0000", "é", "a" * 9999]
        )
    elif change == 1:
        names.append(rng.choice(names))
    elif change == 2:
        names.pop()
    documents = []
    for row in range(rng.randrange(6)):
        values = [rng.choice(NUMBERS) if change == 3 else repr(rng.gauss(0, 1)) for _ in names]
        features = ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True))
        identity = (
            rng.choice(['"a"', "1.5", "null", "[]", '"' + "x" * 2000 + '"'])
            if change == 4
            else str(row)
        )
        documents.append(f'{{"id":{identity},"features":{{{features}}}}}')
    body = f'{{"query":"q","documents":[{",".join(documents)}]}}'.encode()
    if change == 5:
        body = body[: rng.randrange(len(body))]
    return rng.choice(["/rank", "/rank/m", "/rank/m?version=1"]), body, {}


def _tensor(shape: list[Any], data: list[Any]) -> dict[str, Any]:
    return {"name": "features", "datatype": "FP32", "shape": shape, "data": data}


def _infer(rng: random.Random) -> tuple[str, bytes, dict[str, str]]:
    width, rows = len(NAMES), rng.randrange(5)
    data: list[Any] = [rng.gauss(0, 1) for _ in range(rows * width)]
    tensor = _tensor([rows, width], data)
    change = rng.randrange(8)
    if change == 0:
        tensor["shape"] = rng.choice(
            [[rows], [width, rows], [-1, width], [1 << 62, width], [], "x"]
        )
    elif change == 1:
        tensor["data"] = rng.choice([data[1:], [data], [[]] * rows, None, "x", [None] * len(data)])
    elif change == 2:
        tensor["datatype"] = rng.choice(["FP16", "INT64", "", None, "BYTES"])
    elif change == 3:
        tensor["name"] = rng.choice(["scores", "", None, 1])
    body = {"inputs": [tensor] * rng.choice([1, 1, 1, 0, 2])}
    if change == 4:
        body["outputs"] = rng.choice([[{"name": "x"}], [{"name": "scores"}] * 20, [1], {}])
    text = json.dumps(body)
    if change == 5:
        text = text.replace("0.", rng.choice(NUMBERS))
    return "/v2/models/m/infer", text.encode(), {}


def _binary(rng: random.Random) -> tuple[str, bytes, dict[str, str]]:
    rows = rng.randrange(4)
    size = 4 * len(NAMES) * rows
    stated = rng.choice([size, size, size, -1, 1 << 60, "x"])
    tensor = _tensor([rows, len(NAMES)], []) | {"parameters": {"binary_data_size": stated}}
    tensor["datatype"] = rng.choice(["FP32", "FP32", "FP64"])
    if rng.random() < 0.9:
        del tensor["data"]
    header = json.dumps({"inputs": [tensor]}).encode()
    length = rng.choice([len(header), len(header), len(header) - 1, 0, 1 << 40, -1])
    data = rng.randbytes(size + rng.choice([0, 0, 0, 1, -1]) if size else 0)
    return "/v2/models/m/infer", header + data, {"Inference-Header-Content-Length": str(length)}


def _bytes(rng: random.Random) -> tuple[str, bytes, dict[str, str]]:
    path = rng.choice(["/rank", "/v2/models/m/infer", "/v2/repository/models/m/load", "/rank/%00"])
    return path, rng.randbytes(rng.randrange(300)), {}
