"""ONNX: one graph from features in double precision to scores.

Trees are one ``TreeEnsemble`` (ai.onnx.ml 5), whose thresholds, leaves and sums are in double
precision. Its predecessor ``TreeEnsembleRegressor`` compares in double precision too, but returns
single-precision scores, in which documents tie that the ranker tells apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from podium.errors import DataError, MissingPackageError
from podium.export.folder import Feature
from podium.export.targets.base import EngineModel, Request, Target, Written
from podium.kernels import Doubles
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.tree_kernel import ZERO
from podium.scorers.trees import TreeModel, concatenate_trees

MODEL = "model.onnx"
INPUT, OUTPUT = "features", "scores"
_OPSET, _ML_OPSET, _IR_VERSION = 17, 5, 10
_LEQ, _LT = 0, 1
_SUM, _NO_TRANSFORM = 1, 0
_LARGEST_CATEGORY = 1 << 20


class Onnx(Target):
    """A graph with the input ``features`` (documents times features) and the output ``scores``.

    Absent features are NaN.
    """

    name = "onnx"
    title = "ONNX"
    takes_texts = True
    default_version = "1.21"
    single_precision = False
    computes_features = False
    single_scores = False
    largest_score = float(np.finfo(np.float64).max)
    packages = ("onnx", "onnxruntime")

    def write_trees(self, request: Request, model: TreeModel) -> Written:
        """Write one TreeEnsemble, after columns for categories and for zeros that are missing."""
        if not model.trees:  # an ensemble has at least one: a leaf with the base score
            leaf = {"feature": [-1], "value": [model.base_score]}
            model = concatenate_trees([leaf], model.feature_names)
        graph = _Graph()
        columns = INPUT
        if model.single_values:  # its library rounds what it is given
            single = graph.add("Cast", [columns], to=graph.FLOAT)
            columns = graph.add("Cast", [single], to=graph.DOUBLE)
        if model.zero_missing.any():
            columns = _missing_zeros(graph, columns, model)
        feature, threshold = model.feature.copy(), model.threshold.copy()
        if model.has_categories:
            columns = self._membership(graph, columns, model, feature, threshold)
        base = bool(model.base_score)
        trees = graph.add(
            "TreeEnsemble",
            [columns],
            domain="ai.onnx.ml",
            output=None if base else OUTPUT,
            **_tree_attributes(model, feature, threshold),
        )
        if base:
            graph.add("Add", [trees, graph.doubles("base", [model.base_score])], output=OUTPUT)
        return self._written(request, graph)

    def _membership(
        self, graph: _Graph, columns: str, model: TreeModel, feature: Any, threshold: Any
    ) -> str:
        """Append a column for each category set: 0 for members, 1 for others, NaN if missing."""
        appended = [columns]
        number = model.features
        pairs: dict[tuple[int, tuple[int, ...]], int] = {}
        for node in np.flatnonzero(model.category_set >= 0):
            column = int(model.feature[node])
            members = model.category_sets[model.category_set[node]]
            if (column, members) not in pairs:
                largest = max(members, default=0)
                if largest > _LARGEST_CATEGORY:
                    self.refuse(f"categories above {_LARGEST_CATEGORY}", "Number them from 0.")
                table = np.ones(largest + 3)  # below 0, 0 to the largest, above
                table[np.array(members, np.int64) + 1] = 0.0
                value = graph.add("Gather", [columns, graph.integers("column", [column])], axis=1)
                if model.floor_categories:
                    value = graph.add("Floor", [value])
                bounds = [graph.doubles("least", -1.0), graph.doubles("most", largest + 1.0)]
                clipped = graph.add("Clip", [value, *bounds])
                # A missing value has no index: it is looked up as any number, then put back.
                absent = graph.add("IsNaN", [clipped])
                known = graph.add("Where", [absent, graph.doubles("none", 0.0), clipped])
                index = graph.add("Cast", [known], to=graph.INT64)
                index = graph.add("Add", [index, graph.integers("shift", [1])])
                looked_up = graph.add("Gather", [graph.doubles("members", table), index], axis=0)
                nan = graph.doubles("nan", np.nan)
                appended.append(graph.add("Where", [absent, nan, looked_up]))
                pairs[column, members] = number
                number += 1
            feature[node] = pairs[column, members]
            # Members are 0, so that they go left whether or not the comparison is strict.
            threshold[node] = 0.5
        return graph.add("Concat", appended, axis=1)

    def write_linear(self, request: Request, model: LinearModel) -> Written:
        """Write a matrix product in double precision."""
        graph = _Graph()
        graph.add(
            "MatMul", [INPUT, graph.doubles("weights", model.weights[:, None])], output=OUTPUT
        )
        return self._written(request, graph)

    def write_network(self, request: Request, model: NetworkModel) -> Written:
        """Write the scaling in double precision, and the layers in single precision."""
        graph = _Graph()
        centered = graph.add("Sub", [INPUT, graph.doubles("mean", model.mean)])
        scaled = graph.add("Div", [centered, graph.doubles("scale", model.scale)])
        absent = graph.add("IsNaN", [scaled])
        filled = graph.add("Where", [absent, graph.doubles("zero", 0.0), scaled])
        values = graph.add("Cast", [filled], to=graph.FLOAT)
        for number, (weights, biases) in enumerate(model.layers):
            product = graph.add("MatMul", [values, graph.floats("weights", weights.T)])
            values = graph.add("Add", [product, graph.floats("biases", biases)])
            if number + 1 < len(model.layers):
                values = graph.add("Relu", [values])
        graph.add("Cast", [values], to=graph.DOUBLE, output=OUTPUT)
        return self._written(request, graph)

    def _written(self, request: Request, graph: _Graph) -> Written:
        return Written({MODEL: graph.serialize(request)}, absent=(None,) * len(request.names))

    def read(
        self, files: Mapping[str, bytes], features: Sequence[Feature], model: FittedModel
    ) -> EngineModel:
        """Load the graph, which ONNX Runtime scores."""
        absent = np.array(
            [np.nan if feature.absent is None else feature.absent for feature in features]
        )
        return OnnxModel(model, absent, False, files[MODEL])


@dataclass(frozen=True)
class OnnxModel(EngineModel):
    """A graph that ONNX Runtime scores.

    Attributes:
        content: The bytes of the graph.
    """

    content: bytes

    def predict(self, X: ArrayLike) -> Doubles:
        """Score rows with ONNX Runtime."""
        session = inference_session(self.content)
        rows = self.rows(X)
        if not len(rows):
            return np.empty(0)
        return np.asarray(session.run([OUTPUT], {INPUT: rows})[0], np.float64).reshape(-1)


def inference_session(content: bytes, threads: int = 0) -> Any:
    """Load a graph into ONNX Runtime; a DataError if it is not a valid one."""
    runtime = _package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base that is public
        raise DataError(f"is not a valid ONNX graph ({error})", hint="Export it again.") from error


def _package(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError as error:
        raise MissingPackageError(name, extra="export") from error


class _Graph:
    """Collects the nodes and constants of a graph."""

    def __init__(self) -> None:
        self._onnx = _package("onnx")
        self._helper = self._onnx.helper
        types = self._onnx.TensorProto
        self.DOUBLE, self.FLOAT, self.INT64 = types.DOUBLE, types.FLOAT, types.INT64
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        output: str | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Add a node and return the name of its output."""
        result = output or f"{operator.lower()}{len(self._nodes)}"
        node = self._helper.make_node(operator, inputs, [result], domain=domain, **attributes)
        self._nodes.append(node)
        return result

    def doubles(self, name: str, values: ArrayLike) -> str:
        """Add a constant in double precision."""
        return self._constant(name, np.asarray(values, np.float64))

    def floats(self, name: str, values: ArrayLike) -> str:
        """Add a constant in single precision."""
        return self._constant(name, np.asarray(values, np.float32))

    def integers(self, name: str, values: ArrayLike) -> str:
        """Add a constant of integers."""
        return self._constant(name, np.asarray(values, np.int64))

    def _constant(self, name: str, values: Any) -> str:
        unique = f"{name}_{len(self._constants)}"
        tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), unique)
        self._constants.append(tensor)
        return unique

    def serialize(self, request: Request) -> bytes:
        """Return the bytes of the checked graph."""
        helper = self._helper
        width = len(request.names)
        graph = helper.make_graph(
            self._nodes,
            request.model_name,
            [helper.make_tensor_value_info(INPUT, self.DOUBLE, ["documents", width])],
            [helper.make_tensor_value_info(OUTPUT, self.DOUBLE, ["documents", 1])],
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", _OPSET),
                helper.make_opsetid("ai.onnx.ml", _ML_OPSET),
            ],
            ir_version=_IR_VERSION,
            producer_name="podium",
        )
        helper.set_model_props(model, {"feature_names": "\n".join(request.names)})
        self._onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))


def _missing_zeros(graph: _Graph, columns: str, model: TreeModel) -> str:
    """Replace the zeros of features for which they are missing values by NaN."""
    size = graph.add("Abs", [columns])
    limit = graph.doubles("zero", np.where(model.zero_missing, ZERO, -1.0))
    is_zero = graph.add("LessOrEqual", [size, limit])
    return graph.add("Where", [is_zero, graph.doubles("nan", np.nan), columns])


def _tree_attributes(model: TreeModel, feature: Any, threshold: Any) -> dict[str, Any]:
    """Return the attributes of a TreeEnsemble: splits and leaves are numbered separately."""
    helper, types = _package("onnx").helper, _package("onnx").TensorProto
    inner = model.feature >= 0
    splits = np.flatnonzero(inner)
    # A tree of one leaf has no split in this format: it gets one, with two leaves of that value.
    # Twice the same leaf would do, but ONNX Runtime 1.21 then reads the value of another.
    lone = np.flatnonzero(~inner & (model.parents() < 0))
    number = _numbers(model)
    weights = np.empty(np.count_nonzero(~inner))
    weights[number[~inner]] = model.value[~inner]
    copies = len(weights) + np.arange(len(lone))
    weights = np.append(weights, model.value[lone])

    def child(side: Any, leaves_of_lone: Any) -> tuple[list[int], list[int]]:
        nodes = side[splits]
        numbers = np.append(number[nodes], leaves_of_lone)
        is_leaf = np.append(~inner[nodes], np.ones(len(lone), np.bool_))
        return numbers.tolist(), is_leaf.astype(np.int64).tolist()

    true, true_leaf = child(model.left, number[lone])
    false, false_leaf = child(model.right, copies)
    pad = np.zeros(len(lone))
    roots = number[model.roots].copy()
    position = {node: len(splits) + index for index, node in enumerate(lone.tolist())}
    for tree, node in enumerate(model.roots.tolist()):
        if node in position:
            roots[tree] = position[node]
    modes = np.full(len(splits) + len(lone), _LT if model.strict else _LEQ, np.uint8)
    return {
        "n_targets": 1,
        "aggregate_function": _SUM,
        "post_transform": _NO_TRANSFORM,
        "tree_roots": roots.tolist(),
        "nodes_modes": helper.make_tensor("modes", types.UINT8, [len(modes)], modes.tolist()),
        "nodes_featureids": np.append(feature[splits], pad).astype(np.int64).tolist(),
        "nodes_splits": helper.make_tensor(
            "splits", types.DOUBLE, [len(modes)], np.append(threshold[splits], pad).tolist()
        ),
        "nodes_truenodeids": true,
        "nodes_trueleafs": true_leaf,
        "nodes_falsenodeids": false,
        "nodes_falseleafs": false_leaf,
        "nodes_missing_value_tracks_true": np.append(model.missing_left[splits], pad)
        .astype(np.int64)
        .tolist(),
        "leaf_targetids": [0] * len(weights),
        "leaf_weights": helper.make_tensor("leaves", types.DOUBLE, [len(weights)], weights),
    }


def _numbers(model: TreeModel) -> Any:
    """Number splits and leaves separately, both from 0.

    ONNX Runtime before 1.30 takes a root for a leaf if its two children, a split and a leaf, have
    the same number (https://github.com/microsoft/onnxruntime/issues/24679). So leaves are numbered
    from one on for which no root has such children. There is one: each root excludes one of as
    many as there are leaves, and has at least three leaves below it.
    """
    inner = model.feature >= 0
    number = np.where(inner, np.cumsum(inner), np.cumsum(~inner)) - 1
    roots = model.roots[inner[model.roots]]
    left, right = model.left[roots], model.right[roots]
    mixed = inner[left] != inner[right]
    split = np.where(inner[left], left, right)[mixed]
    leaf = np.where(inner[left], right, left)[mixed]
    leaves = np.count_nonzero(~inner)
    excluded = set(((number[split] - number[leaf]) % leaves).tolist())
    first = next(shift for shift in range(leaves) if shift not in excluded)
    return np.where(inner, number, (number + first) % leaves)
