"""Verification notices each changed number, however small or large features and scores are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest

from podium.export import export_ranker, verify_export
from podium.export.folder import ExportFolder
from podium.rankers import LinearRanker, NeuralRanker, Ranker
from tests.export.engine_arithmetic import ArithmeticEngine
from tests.export.faults import rewrite
from tests.export.trained import queries

SCALES = [(1e-12, 1e-12), (1.0, 1.0), (1e-12, 1e12), (1e12, 1e-12)]
"""What features and what scores are multiplied by."""
KINDS = [("linear", "opensearch"), ("linear", "solr"), ("trees", "opensearch"), ("trees", "solr"),
         ("network", "solr")]  # fmt: skip
_OPENSEARCH_MODEL = ("model", "model", "definition")


def linear(features: float, scores: float, _folder: Path) -> Ranker:
    """Weights for features that are of very different sizes themselves."""
    ranker = LinearRanker("ListNet()").fit(queries(missing=False))
    own = 10.0 ** np.array([-6, -3, 0, 0, 3, 6])
    ranker.coef_ = np.array([1, -2, 3, -0.5, 0.25, 1.5]) * scores / (features * own)
    return ranker


def trees(features: float, scores: float, folder: Path) -> Path:
    """LightGBM's file of a few small trees, with its numbers multiplied."""
    data = queries()
    settings = {"objective": "regression", "num_leaves": 4, "verbosity": -1, "num_threads": 1}
    train = lightgbm.Dataset(data.features, data.labels)
    text = lightgbm.train(settings, train, 3).model_to_string()
    for name, factor in (("threshold", features), ("leaf_value", scores)):
        text = re.sub(
            f"(?m)^{name}=(.*)$",
            lambda line, name=name, factor=factor:
                f"{name}=" + " ".join(repr(float(each) * factor) for each in line[1].split()),
            text,
        )  # fmt: skip
    blocks = re.findall(r"(?s)Tree=\d+\n.*?\n\n\n", text)
    text = re.sub(
        "tree_sizes=.*", f"tree_sizes={' '.join(str(len(each)) for each in blocks)}", text
    )
    path = folder / "model.txt"
    path.write_text(text)
    return path


def network(features: float, scores: float, _folder: Path) -> Ranker:
    """A small network whose units all count for some rows."""
    ranker = NeuralRanker("ListNet()", hidden_layer_sizes=[2], epochs=2).fit(queries())
    ranker.mean_, ranker.scale_ = ranker.mean_ * features, ranker.scale_ * features
    state = ranker._state()
    state["2.weight"], state["2.bias"] = state["2.weight"] * scores, state["2.bias"] * scores
    ranker._set_state({name: value.astype(np.float32) for name, value in state.items()})
    return ranker


RANKERS: dict[str, Callable[[float, float, Path], Any]] = {
    "linear": linear, "trees": trees, "network": network,
}  # fmt: skip


def content(export: ExportFolder) -> Any:
    """The model as JSON: OpenSearch has it as a string in another one."""
    body = export.read_json("model.json")
    return body, json.loads(body["model"]["model"]["definition"]) if "model" in body else body


def places(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield where each number of a model is, and what it is."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in items:
        if isinstance(each, dict | list):
            yield from places(each)
        elif name in ("threshold", "split_condition"):
            yield value, name, "threshold"
        elif name in ("nodeid", "depth", "yes", "no", "missing", "weight", "defaultValue"):
            continue
        elif isinstance(each, float) or name in ("value", "avg", "std"):
            yield value, name, "scale" if name == "std" else "number"


def changes(number: float, kind: str, target: str) -> Iterator[float]:
    """Yield other numbers: a threshold a step away, anything else a little and in its sign."""
    if kind == "threshold":
        slack = np.float32(1e-6 if target == "solr" else 0)
        for direction in (np.float32(-np.inf), np.float32(np.inf)):
            # What Solr adds a millionth to may be many steps away until the sum is another.
            stepped = np.nextafter(np.float32(number) + slack, direction)
            moved = stepped - slack
            while moved + slack == np.float32(number) + slack:
                moved = np.nextafter(moved, direction)
            yield float(moved)
        return
    yield number * 1.01 if number else 0.01
    if kind == "number" and number:
        yield -number


@pytest.mark.parametrize("scales", SCALES, ids=lambda pair: f"{pair[0]:g} {pair[1]:g}")
@pytest.mark.parametrize(("kind", "target"), KINDS)
def test_each_changed_number_is_noticed(
    kind: str, target: str, scales: tuple[float, float], tmp_path: Path
) -> None:
    export = export_ranker(RANKERS[kind](*scales, tmp_path), target, tmp_path / "export")
    original = export.target_files()
    golden = export.golden_rows()
    expected = ArithmeticEngine(original).score(export, golden.values)
    unchanged = verify_export(export, ArithmeticEngine(original))
    assert unchanged.holds, unchanged.findings
    assert unchanged.largest <= unchanged.tolerance <= 1e-5 * np.abs(golden.scores).max()
    assert np.ptp(golden.scores) > 0
    body, model = content(export)
    tried = silent = 0
    for holder, name, what in list(places(model)):
        before = holder[name]
        for number in changes(float(before), what, target):
            holder[name] = repr(number) if isinstance(before, str) else number
            if "model" in body:
                body["model"]["model"]["definition"] = json.dumps(model)
            changed = {**original, "model.json": json.dumps(body).encode()}
            rewrite(export.path, "model.json", changed["model.json"])
            assert not verify_export(export.path).holds, (name, before, number)
            rewrite(export.path, "model.json", original["model.json"])
            engine = ArithmeticEngine(changed)
            found = verify_export(export.path, engine)
            differ = (engine.score(export, golden.values) != expected).any()
            assert found.holds == (not differ), (name, before, number)
            tried += 1
            silent += not differ
        holder[name] = before
    assert tried >= 12
    # What no score shows is counted.
    assert silent <= 2 * _unshown(unchanged.unchecked)


def _unshown(texts: tuple[str, ...]) -> int:
    return sum(int(match[1]) for text in texts if (match := re.match(r"(\d+) of \d+ ", text)))
