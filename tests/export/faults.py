"""Changes of a written export that must be noticed, one of each kind for each target."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.export.folder import MANIFEST, ExportFolder
from podium.export.targets.onnx import MODEL as ONNX_MODEL
from podium.scorers.single_precision import at_most

Change = Callable[[dict[str, Any]], str]
"""Changes a parsed file; returns what a finding must say."""


def _splits(target: str, model: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each split with the number of its tree, in the format of a target."""
    if target == "elasticsearch":
        ensemble = model["definition"]["trained_model"]["ensemble"]
        for tree, item in enumerate(ensemble["trained_models"]):
            for node in item["tree"]["tree_structure"]:
                if "left_child" in node:
                    yield tree, node
        return
    for tree, root in enumerate(_roots(target, model)):
        stack = [root]
        while stack:
            node = stack.pop()
            children = _children(target, node)
            if children:
                yield tree, node
                stack += children


def _roots(target: str, model: dict[str, Any]) -> list[dict[str, Any]]:
    if target == "solr":
        return [tree["root"] for tree in model["params"]["trees"]]
    if target == "vespa":
        return [tree["tree_structure"] for tree in model["tree_info"]]
    return model["splits"]


def _children(target: str, node: dict[str, Any]) -> list[dict[str, Any]]:
    if target == "solr":
        return [node["left"], node["right"]] if "left" in node else []
    if target == "vespa":
        return [node["left_child"], node["right_child"]] if "left_child" in node else []
    return node.get("children", [])


def _threshold_key(target: str) -> str:
    return "split_condition" if target in ("opensearch", "o19s") else "threshold"


def _move_threshold(target: str, node: dict[str, Any], up: bool) -> None:
    key = _threshold_key(target)
    direction = np.inf if up else -np.inf
    if target == "elasticsearch":
        # One step of the single-precision values that are compared with it.
        value = at_most([node[key]], strict=False)[0]
        node[key] = float(np.nextafter(value, np.float32(direction)))
    elif target == "solr":
        value = np.float32(node[key])
        before = moved = value + np.float32(1e-6)
        while moved == before:
            value = np.nextafter(value, np.float32(direction))
            moved = value + np.float32(1e-6)
        node[key] = repr(float(value))
    else:
        node[key] = float(np.nextafter(np.float32(node[key]), np.float32(direction)))


def _swap_children(target: str, node: dict[str, Any]) -> None:
    if target == "solr":
        node["left"], node["right"] = node["right"], node["left"]
    elif target in ("vespa", "elasticsearch"):
        node["left_child"], node["right_child"] = node["right_child"], node["left_child"]
    else:
        first, second = node["children"]
        for child, number in ((first, node["no"]), (second, node["yes"])):
            child["nodeid"] = number
        node["children"] = [second, first]


def _flip_missing(target: str, node: dict[str, Any]) -> None:
    if target == "solr":
        node["missing"] = "left" if node["missing"] == "right" else "right"
    elif target in ("vespa", "elasticsearch"):
        node["default_left"] = not node["default_left"]
    else:
        node["missing"] = node["no"] if node["missing"] == node["yes"] else node["yes"]


def _drop_tree(target: str, model: dict[str, Any], tree: int) -> None:
    if target == "elasticsearch":
        ensemble = model["definition"]["trained_model"]["ensemble"]
        del ensemble["trained_models"][tree]
        del ensemble["aggregate_output"]["weighted_sum"]["weights"][tree]
    elif target == "solr":
        del model["params"]["trees"][tree]
    elif target == "vespa":
        del model["tree_info"][tree]
    else:
        del model["splits"][tree]


def _swap_features(target: str, model: dict[str, Any], first: str, second: str) -> None:
    swapped = {first: second, second: first}
    if target == "elasticsearch":
        for item in model["definition"]["trained_model"]["ensemble"]["trained_models"]:
            names = item["tree"]["feature_names"]
            item["tree"]["feature_names"] = [swapped.get(name, name) for name in names]
        return
    if target == "vespa":
        names = model["feature_names"]
        model["feature_names"] = [swapped.get(name, name) for name in names]
        return
    key = "feature" if target == "solr" else "split"
    for _, node in _splits(target, model):
        node[key] = swapped.get(node[key], node[key])


def faults(target: str, count: int, names: list[str]) -> Iterator[tuple[str, Change]]:
    """Yield changes of the model of a search engine, with the words of their findings."""
    random = np.random.default_rng(7)

    def at_split(change: Callable[[str, dict[str, Any]], None], words: str) -> Change:
        pick = random.random()

        def apply(model: dict[str, Any]) -> str:
            splits = list(_splits(target, model))
            tree, node = splits[int(pick * len(splits))]
            change(target, node)
            return f"tree {tree}, .*{words}"

        return apply

    def drop(model: dict[str, Any]) -> str:
        _drop_tree(target, model, 3)
        return "tree 3: 1 tree is missing"

    def swap_features(model: dict[str, Any]) -> str:
        _swap_features(target, model, names[0], names[1])
        return f"features {names[0]} and {names[1]} are swapped"

    moved = "go left instead of up to"
    kinds: list[tuple[str, Callable[[], Change]]] = [
        ("threshold up", lambda: at_split(partial(_move_threshold, up=True), moved)),
        ("threshold down", lambda: at_split(partial(_move_threshold, up=False), moved)),
        ("children swapped", lambda: at_split(_swap_children, "its children are swapped")),
        ("missing flipped", lambda: at_split(_flip_missing, "a missing value goes")),
        ("tree dropped", lambda: drop),
        ("features swapped", lambda: swap_features),
    ]  # fmt: skip
    for number in range(count):
        name, make = kinds[number % len(kinds)]
        yield name, make()


def apply_fault(export: ExportFolder, change: Change) -> str:
    """Change the model of an export on disk, with its digest; return what must be found."""
    if export.manifest.target == "onnx":
        raise ValueError("a graph is not JSON")
    body = json.loads(export.read("model.json"))
    if export.manifest.target in ("opensearch", "o19s"):
        model = json.loads(body["model"]["model"]["definition"])
        words = change(model)
        body["model"]["model"]["definition"] = json.dumps(model)
    else:
        words = change(body)
    rewrite(export.path, "model.json", json.dumps(body).encode())
    return words


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """Replace a file of an export together with its digest in the manifest."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))


def change_onnx(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the attributes of the trees of a graph on disk."""
    import onnx

    model = onnx.load_model_from_string((folder / ONNX_MODEL).read_bytes())
    (node,) = (node for node in model.graph.node if node.op_type == "TreeEnsemble")
    values = {}
    for item in node.attribute:
        value = onnx.helper.get_attribute_value(item)
        is_tensor = isinstance(value, onnx.TensorProto)
        values[item.name] = (
            onnx.numpy_helper.to_array(value).copy() if is_tensor else np.array(value)
        )
    change(values)
    for item in node.attribute:
        value = values[item.name]
        if item.type == onnx.AttributeProto.TENSOR:
            item.t.CopyFrom(onnx.numpy_helper.from_array(value, item.t.name))
        elif item.type == onnx.AttributeProto.INTS:
            del item.ints[:]
            item.ints.extend(int(number) for number in value)
    rewrite(folder, ONNX_MODEL, model.SerializeToString())
