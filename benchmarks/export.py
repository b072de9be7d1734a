"""Exported rankers: every target scores every row as the ranker does, and how fast and large.

    python -m benchmarks.export [--quick]

Rankers are trained on MQ2008 and on the MSLR sample with a tenth of its values missing, and all
rows are scored by what each target computes from the written files: by ONNX Runtime, and for search
engines by the reader that follows the engine's rules. At full size the engines that `make engines`
installed score all rows, too: running ones, and the classes of Elasticsearch and Vespa. Versions
are deployed and rolled back in running engines, with faults in between, while a client searches by
what is deployed. Differences are fractions of what rounding explains for a row.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._deploys import check_deploys
from benchmarks._export_engines import ScoringEngine, engines
from benchmarks._random_trees import random_model, rows_on_edges
from benchmarks._report import Report, median_seconds, wants_quick
from podium.data import Dataset, read_letor
from podium.errors import ArgumentError
from podium.export import export_ranker, verify_export
from podium.export.folder import ExportFolder, Feature
from podium.export.targets import TARGETS
from podium.export.targets.base import EngineModel, Request
from podium.export.targets.onnx import INPUT, inference_session
from podium.export.verifying import read_written, score_tolerance
from podium.export.writing import ExportSettings
from podium.kernels import Doubles
from podium.rankers import BoostedRanker, LinearRanker, NeuralRanker, Ranker, TreeRanker
from podium.scorers.trees import TreeModel

_DATA = Path(__file__).parents[2] / "shared" / "data"
_CUT = 10


def main() -> None:
    """Run the benchmark."""
    quick = wants_quick(__doc__)
    packages = ["onnx", "onnxruntime", "lightgbm", "catboost"]
    report = Report("export", quick, packages=packages)
    with tempfile.TemporaryDirectory() as folder:
        if _DATA.exists():
            for name, data in _data_sets():
                _check_rankers(report, name, data, Path(folder), quick)
            if not quick:
                _check_engines(report, Path(folder))
        else:
            report.note(f"{_DATA} is not here: no ranker is trained on public data")
        _check_speed(report, Path(folder), quick)
        _check_size(report, Path(folder), quick)
    check_deploys(report, quick)
    _check_random_models(report, 600 if quick else 20_000)
    report.finish()


def _data_sets() -> Iterator[tuple[str, Dataset]]:
    parts = [read_letor(_DATA / "letor" / "MQ2008" / f"S{number}.txt.gz") for number in range(1, 6)]
    yield "MQ2008", _joined(parts)
    sample = read_letor(_DATA / "mslr-sample" / "sample.txt.gz")
    features = sample.features.copy()
    features[np.random.default_rng(0).random(features.shape) < 0.1] = np.nan
    yield (
        "MSLR",
        Dataset.from_arrays(features, labels=sample.labels, group=sample.sizes),
    )


def _joined(parts: list[Dataset]) -> Dataset:
    return Dataset.from_arrays(
        np.concatenate([part.features for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        group=np.concatenate([part.sizes for part in parts]),
    )


def _rankers(data: Dataset, folder: Path, quick: bool) -> Iterator[tuple[str, Ranker | Path]]:
    queries = np.arange(len(data))
    train, held = data.select(queries[queries % 5 > 0]), data.select(queries[queries % 5 == 0])
    trees = 30 if quick else 300
    yield (
        "LightGBM",
        TreeRanker("ListMLE(k=10)", n_estimators=trees, early_stopping_rounds=10).fit(
            train, eval_set=held
        ),
    )
    yield "XGBoost", TreeRanker(engine="xgboost", n_estimators=trees).fit(train, eval_set=held)
    yield "CatBoost file", _catboost(train, folder, trees)
    yield "RankBoost", BoostedRanker(n_estimators=trees).fit(train, eval_set=held)
    focused = BoostedRanker(beta=0.5, k=10, list_measure="nDCG", n_estimators=trees)
    yield "FocusedBoost", focused.fit(train, eval_set=held)
    yield "network", NeuralRanker("ListNet()", epochs=3 if quick else 30).fit(train, eval_set=held)
    if not np.isnan(data.features).any():
        yield "linear", LinearRanker("ListNet()", max_iter=5000).fit(train, eval_set=held)


def _catboost(train: Dataset, folder: Path, trees: int) -> Path:
    import catboost

    pool = catboost.Pool(train.features, train.labels, group_id=train.query_of_row)
    model = catboost.CatBoost(
        {
            "loss_function": "YetiRank", "iterations": min(trees, 100), "depth": 6,
            "random_seed": 0, "thread_count": 2, "allow_writing_files": False,
        }
    )  # fmt: skip
    model.fit(pool, verbose=False)
    path = folder / "catboost.json"
    model.save_model(str(path), format="json")
    return path


def _check_rankers(report: Report, name: str, data: Dataset, folder: Path, quick: bool) -> None:
    report.note(
        f"{name}: {data.rows:,} rows, {len(data):,} queries, {data.features.shape[1]} features"
    )
    worst: dict[str, float] = dict.fromkeys(TARGETS, 0.0)
    differing: dict[str, int] = dict.fromkeys(TARGETS, 0)
    faults = 0
    covered: dict[str, list[str]] = {target: [] for target in TARGETS}
    for kind, ranker in _rankers(data, folder, quick):
        expected = _expected(ranker, data)
        for target in TARGETS:
            options = ExportSettings(golden_rows=300 if quick else 2000)
            try:
                export = export_ranker(ranker, target, folder / f"{kind}.{target}", options)
            except ArgumentError:
                continue
            faults += not verify_export(export).holds
            engine = _written(export)
            scores = engine.predict(data.features)
            covered[target].append(kind)
            tolerance = _tolerance(export, data)
            worst[target] = max(worst[target], _share(scores, expected, tolerance))
            differing[target] += _differing_queries(expected, scores, data, tolerance)
    for target, kinds in covered.items():
        report.check(
            f"{name}, {target}: largest difference over what rounding explains "
            f"({', '.join(kinds)})",
            worst[target], 1.0, at_least=False, unit="",
        )  # fmt: skip
        report.check(
            f"{name}, {target}: queries whose top {_CUT} differs", differing[target], 0,
            at_least=False, unit="",
        )  # fmt: skip
    report.check(f"{name}: exports that verify rejects", faults, 0, at_least=False, unit="")


def _check_engines(report: Report, folder: Path) -> None:
    trained = []
    for name, data in _data_sets():
        models = folder / name
        models.mkdir()
        trained.append((name, data, list(_rankers(data, models, quick=True))))
    for engine_name, started in engines():
        if started is None:
            report.note(f"{engine_name}: not installed, see 'make engines'")
            continue
        with started as engine:
            for name, data, rankers in trained:
                if not engine.takes(data):
                    report.note(f"{engine.name} does not take the values of {name}")
                    continue
                _check_engine(report, engine, name, data, rankers, folder)


def _check_engine(
    report: Report,
    engine: ScoringEngine,
    name: str,
    data: Dataset,
    rankers: list[tuple[str, Ranker | Path]],
    folder: Path,
) -> None:
    worst, differing, other_digits, kinds = 0.0, 0, 0, []
    for kind, ranker in rankers:
        path = folder / f"{kind}.{engine.name}.{name}"
        scores = engine.score(path, ranker, data)
        if scores is None:
            continue
        kinds.append(kind)
        expected = _expected(ranker, data)
        export = ExportFolder.open(path)
        tolerance = _tolerance(export, data)
        worst = max(worst, _share(scores, expected, tolerance))
        differing += _differing_queries(expected, scores, data, tolerance)
        other_digits += int((_written(export).predict(data.features) != scores).sum())
    report.check(
        f"{name}, {engine.name} itself: largest difference over what rounding explains "
        f"({', '.join(kinds)})",
        worst, 1.0, at_least=False, unit="",
    )  # fmt: skip
    if engine.same_digits:
        report.check(
            f"{name}, {engine.name} itself: scores with another last digit than by its arithmetic",
            other_digits, 0, at_least=False, unit="",
        )  # fmt: skip
    report.check(
        f"{name}, {engine.name} itself: queries whose top {_CUT} differs", differing, 0,
        at_least=False, unit="",
    )  # fmt: skip


def _expected(ranker: Ranker | Path, data: Dataset) -> Doubles:
    if isinstance(ranker, Path):  # CatBoost's own reader, not Podium's
        import catboost

        model = catboost.CatBoost().load_model(str(ranker), format="json")
        return np.asarray(model.predict(data.features), np.float64)
    return ranker.predict(data)


def _tolerance(export: ExportFolder, data: Dataset) -> Doubles:
    """Return what rounding explains for each row, and for two that change places."""
    rows = data.features.astype(np.float64)
    return score_tolerance(export.manifest.target, export.reference(), rows)


def _written(export: ExportFolder) -> EngineModel:
    return read_written(export, export.reference())


def _share(scores: Doubles, expected: Doubles, tolerance: Doubles) -> float:
    off = np.abs(scores - expected)
    return float((off[off > 0] / tolerance[off > 0]).max(initial=0.0))


def _differing_queries(
    expected: Doubles, scores: Doubles, data: Dataset, tolerance: Doubles
) -> int:
    """Count queries whose first documents differ by more than the order of equal scores."""
    count = 0
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        ours, theirs = expected[begin:end], scores[begin:end]
        best = np.sort(ours)[::-1][:_CUT]
        placed = ours[np.argsort(-theirs, kind="stable")[:_CUT]]
        count += bool((np.abs(best - placed) > 2 * tolerance[begin:end].max()).any())
    return count


def _check_speed(report: Report, folder: Path, quick: bool) -> None:
    random = np.random.default_rng(0)
    X = random.random((3000, 46)).astype(np.float32)
    y = np.round(3 * X[:, 0] + X[:, 1] * X[:, 2])
    ranker = TreeRanker(n_estimators=300).fit(X, y, group=[30] * 100)
    export = export_ranker(ranker, "onnx", folder / "speed")
    session = inference_session(export.read("model.onnx"), threads=1)
    rows, doubles = X[:100], X[:100].astype(np.float64)
    booster = ranker.booster_
    functions: dict[str, Callable[[], object]] = {
        "onnx": lambda: session.run(None, {INPUT: doubles}),
        "lightgbm": lambda: booster.predict(rows, raw_score=True, num_threads=1),
    }
    for function in functions.values():
        function()
    seconds = median_seconds(functions, 50 if quick else 500)
    report.note(
        f"100 documents x 46 features x 300 trees, one thread: ONNX Runtime "
        f"{1e3 * seconds['onnx']:.2f} ms, LightGBM {1e3 * seconds['lightgbm']:.2f} ms"
    )
    ratio = seconds["onnx"] / seconds["lightgbm"]
    report.check("time of ONNX Runtime as a multiple of LightGBM's own", ratio, 1.0, at_least=False)


def _check_size(report: Report, folder: Path, quick: bool) -> None:
    trees = 20 if quick else 1000
    random = np.random.default_rng(0)
    X = random.random((20_000, 46)).astype(np.float32)
    y = np.round(3 * X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3])
    ranker = TreeRanker(n_estimators=trees, num_leaves=63).fit(X, y, group=[100] * 200)
    for target in TARGETS:
        start = time.perf_counter()
        export = export_ranker(ranker, target, folder / f"size.{target}")
        seconds = time.perf_counter() - start
        size = sum(len(content) for content in export.target_files().values())
        golden = export.manifest.golden
        report.note(
            f"{trees} trees of 63 leaves, {target}: {size / 2**20:.1f} MiB in {seconds:.1f} s, "
            f"{golden['rows']} golden rows reach {golden['leaves_reached']} of {golden['leaves']}"
        )
        report.check(
            f"{target}: leaves that golden rows reach", golden["leaves_reached"] / golden["leaves"],
            1.0, unit="",
        )  # fmt: skip


def _check_random_models(report: Report, cases: int) -> None:
    random = np.random.default_rng(1)
    wrong = dict.fromkeys(TARGETS, 0)
    for number in range(cases):
        target = list(TARGETS)[number % len(TARGETS)]
        model = random_model(
            random,
            trees=int(random.integers(1, 5)),
            depth=int(random.integers(1, 6)),
            strict=bool(random.integers(2)),
            categories=target == "onnx" and bool(random.integers(2)),
            zero_missing=target == "onnx" and bool(random.integers(2)),
        )
        wrong[target] += not _same(model, target, random)
    for target, count in wrong.items():
        report.check(
            f"{target}: random trees of {cases // len(TARGETS):,} that differ on awkward rows",
            count, 0, at_least=False, unit="",
        )  # fmt: skip


def _same(model: TreeModel, target: str, random: np.random.Generator) -> bool:
    writer: Any = TARGETS[target]
    request = Request(model, model.feature_names, "random", writer.default_version)
    written = writer.write(request)
    features = [
        Feature(name, name, absent)
        for name, absent in zip(request.names, written.absent, strict=True)
    ]
    rows = rows_on_edges(random, model, 50)
    for column, first, last in written.avoided:
        rows = rows[~((rows[:, column] >= first) & (rows[:, column] <= last))]
    scores = writer.read(written.files, features, model).predict(rows)
    return len(rows) > 0 and bool(np.array_equal(scores, model.predict(rows)))


if __name__ == "__main__":
    main()
