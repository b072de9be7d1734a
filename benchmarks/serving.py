"""The reranking service: its time beside the model's own and that of an empty handler.

Measures one request of 100 documents with 46 features by LightGBM (300 trees), over one connection
on this machine, interleaved with the same model called in this process (a) and with an empty
FastAPI handler of the same payload (b): one that declares the payload, which FastAPI parses and
validates, and, for comparison, one that only reads the bytes. Then the engines that score each kind
of ranker; the memory of a process over many requests; the requests per second of two processes
beside two of the empty handler, under load from wrk; how often drift is reported, where there is
some and where not; and honest requests beside hostile ones.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks._drift_rates import drift_rates
from benchmarks._hostile_traffic import serve_beside_hostile_traffic
from benchmarks._no_skew import check_no_skew
from benchmarks._report import Report, median_seconds, wants_quick
from benchmarks._search_speed import check_search_speed
from benchmarks._serving_load import has_wrk, requests_per_second
from benchmarks._serving_processes import Client, empty_served, resident_bytes, served
from podium.data import Dataset
from podium.kernels import Floats
from podium.rankers import BoostedRanker, LinearRanker, NeuralRanker, Ranker, TreeRanker
from podium.serving.scoring import onnx_score, scorer_of

DOCUMENTS, FEATURES = 100, 46
_ROUNDS = 3
NAMES = tuple(f"feature_{number:02}" for number in range(1, FEATURES + 1))


def main() -> None:
    """Run the benchmark."""
    quick = wants_quick(__doc__)
    report = Report(
        "serving", quick, packages=["fastapi", "uvicorn", "msgspec", "onnxruntime", "lightgbm"]
    )
    data = ranking_data()
    rows = np.ascontiguousarray(data.features[:DOCUMENTS])
    trees = TreeRanker("LambdaMART", n_estimators=300, num_leaves=31).fit(data)
    _engines(report, trees, data, rows, 20 if quick else 200)
    with tempfile.TemporaryDirectory() as folder:
        ranker = Path(folder) / "web.podium"
        trees.save(ranker)
        _one_process(report, trees, ranker, rows, *((300, 2_000) if quick else (3000, 200_000)))
        _throughput(report, ranker, rows, 1 if quick else 10)
    drift_rates(report, 40 if quick else 1000)
    serve_beside_hostile_traffic(report, 0.25 if quick else 30)
    if not quick:  # engines take a minute to start
        check_no_skew(report, documents=15_000, queries=1000)
        check_search_speed(report, documents=15_000, queries=200, repeats=5)
    report.finish()


def ranking_data() -> Dataset:
    """Features between 0 and 1 with six decimals, as in LETOR's files."""
    random = np.random.default_rng(0)
    X = np.round(random.random((3000, FEATURES)), 6)
    labels = np.clip(
        np.round(2 * X[:, 0] + 3 * X[:, 1] * X[:, 2] + random.normal(0, 0.3, 3000)), 0, 4
    )
    return Dataset.from_arrays(X, labels, group=[100] * 30, feature_names=NAMES)


def _engines(report: Report, trees: Ranker, data: Dataset, rows: Floats, repeats: int) -> None:

    rankers = {
        "LightGBM": trees,
        "XGBoost": TreeRanker("LambdaMART", engine="xgboost", n_estimators=300).fit(data),
        "linear": LinearRanker("ListNet()").fit(data),
        "neural": NeuralRanker("ListNet()", epochs=2, hidden_layer_sizes=(64, 32)).fit(data),
        "boosted": BoostedRanker(n_estimators=50).fit(data),
    }
    for name, ranker in rankers.items():
        scorer, exported = scorer_of(ranker), ranker.fitted_model()
        engines = {"native": ranker.score_query, "onnxruntime": onnx_score(exported)}
        if scorer.engine not in engines:
            engines[scorer.engine] = scorer.score
        for score in engines.values():
            score(rows)
        seconds = median_seconds(
            {engine: partial(score, rows) for engine, score in engines.items()}, repeats
        )
        times = ", ".join(f"{value * 1e6:,.0f} µs by {each}" for each, value in seconds.items())
        report.note(f"{name}: {times}; served by {scorer.engine}")
        best = min(value for each, value in seconds.items() if each != scorer.engine)
        served_over_best = seconds[scorer.engine] / best
        report.check(f"{name}: served engine over the best other", served_over_best, 1.1, False)


def _one_process(
    report: Report, ranker: Ranker, path: Path, rows: Floats, repeats: int, requests: int
) -> None:
    """Measure the time of a request, and memory over many."""
    with served(path) as (port, process):
        _latency(report, ranker, port, rows, repeats)
        _memory(report, port, process, rows, requests)
        if has_wrk():
            url, seconds = f"http://127.0.0.1:{port}/rank", max(1, repeats // 300)
            rate = requests_per_second(url, rank_body(rows), {}, seconds=seconds)
            report.note(f"rank: {rate:,.0f} requests per second, one process")


def _latency(report: Report, ranker: Ranker, port: int, rows: Floats, repeats: int) -> None:
    body, tensor, header = rank_body(rows), *binary_tensor(rows)
    score = scorer_of(ranker).score
    with empty_served() as empty_port:
        service, empty = Client(port), Client(empty_port)
        binary_headers = {"Inference-Header-Content-Length": str(header)}
        functions: dict[str, Callable[[], object]] = {
            "model": lambda: score(rows),
            "empty": lambda: empty.post("/rank", body, {"Content-Type": "application/json"}),
            "only read": lambda: empty.post("/read", body),
            "rank": lambda: service.post("/rank", body),
            "empty, binary": lambda: empty.post("/read", tensor),
            "infer": lambda: service.post("/v2/models/web/infer", tensor, binary_headers),
        }
        seconds = _sample(functions, repeats)
    p50 = {name: float(np.quantile(values, 0.5)) for name, values in seconds.items()}
    p99 = {name: float(np.quantile(values, 0.99)) for name, values in seconds.items()}
    report.note(f"{len(body):,} bytes of JSON, {len(tensor):,} of a binary tensor")
    for name in functions:
        report.note(f"{name}: p50 {1000 * p50[name]:.2f} ms, p99 {1000 * p99[name]:.2f} ms")
    for name, base in (("rank", "empty"), ("infer", "empty, binary")):
        report.check(
            f"p50 of {name} over model + empty handler",
            p50[name] / (p50["model"] + p50[base]), 1.3, at_least=False,
        )  # fmt: skip
    ratio = p50["rank"] / (p50["model"] + p50["only read"])
    report.note(f"p50 of rank over model + handler that only reads: {ratio:.2f}")


def _sample(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, Sequence[float]]:
    """Time functions interleaved, after some calls that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repeat in range(repeats + 20):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if repeat >= 20:
                seconds[name].append(time.perf_counter() - start)
    return dict(seconds)


def _throughput(report: Report, path: Path, rows: Floats, seconds: int) -> None:
    """Two processes of the service beside two of the empty handler, each loaded by wrk in turn."""
    if not has_wrk():
        report.note("throughput is not measured: wrk is not installed ('make system')")
        return
    body, tensor, header = rank_body(rows), *binary_tensor(rows)
    binary = {"Inference-Header-Content-Length": str(header)}
    with served(path, "--workers", "2") as (port, _), empty_served(2) as empty_port:
        service, empty = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{empty_port}"
        targets = {
            "empty": (f"{empty}/rank", body, {"Content-Type": "application/json"}),
            "only read": (f"{empty}/read", body, {}),
            "rank": (f"{service}/rank", body, {}),
            "empty, binary": (f"{empty}/read", tensor, {}),
            "infer": (f"{service}/v2/models/web/infer", tensor, binary),
        }
        rates: dict[str, list[float]] = {name: [] for name in targets}
        for _ in range(_ROUNDS):
            for name, (url, content, headers) in targets.items():
                rates[name].append(requests_per_second(url, content, headers, seconds=seconds))
    median = {name: float(np.median(values)) for name, values in rates.items()}
    for name, value in median.items():
        report.note(f"{name}: {value:,.0f} requests per second, two processes")
    report.check("throughput of rank over empty handler", median["rank"] / median["empty"], 0.5)
    # A handler that parses nothing takes less time than the model: no service can come near it.
    for name, base in (("rank", "only read"), ("infer", "empty, binary")):
        ratio = median[name] / median[base]
        report.note(f"throughput of {name} over a handler that only reads: {ratio:.2f}")


def _memory(report: Report, port: int, process: int, rows: Floats, requests: int) -> None:
    body = rank_body(rows)
    client = Client(port)
    for _ in range(500):
        client.post("/rank", body)
    before = resident_bytes(process)
    for _ in range(requests):
        client.post("/rank", body)
    growth = (resident_bytes(process) - before) / 2**20
    report.note(f"{before / 2**20:.0f} MiB before {requests:,} requests")
    report.check(f"growth over {requests:,} requests", growth, 8, at_least=False, unit="MiB")


def rank_body(rows: Floats) -> bytes:
    """Return the body of a request to ``/rank``."""
    documents = [
        {"id": f"d{number}", "features": dict(zip(NAMES, values, strict=True))}
        for number, values in enumerate(np.round(rows.astype(np.float64), 6).tolist())
    ]
    return json.dumps({"query": "q", "documents": documents}, separators=(",", ":")).encode()


def binary_tensor(rows: Floats) -> tuple[bytes, int]:
    """Return the body of an inference request with a binary tensor, and its JSON's length."""
    size = rows.size * 4
    request = {
        "inputs": [
            {
                "name": "features", "shape": list(rows.shape), "datatype": "FP32",
                "parameters": {"binary_data_size": size},
            }
        ],
        "parameters": {"binary_data_output": True},
    }  # fmt: skip
    header = json.dumps(request).encode()
    return header + rows.astype("<f4").tobytes(), len(header)


if __name__ == "__main__":
    main()
