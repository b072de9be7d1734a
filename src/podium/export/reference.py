"""The exported model beside its export, to explain a difference by its trees."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.export.reading import Model
from podium.export.scorers import LinearModel, NetworkModel
from podium.export.trees import TreeModel
from podium.rankers.storage import Archive, archive_bytes, read_archive

_NODE_ARRAYS = (
    "roots", "feature", "threshold", "left", "right", "missing_left", "value", "category_set",
    "zero_missing",
)  # fmt: skip
_OPTIONS = ("strict", "base_score", "floor_categories", "single_values", "single_precision")


def reference_bytes(model: Model) -> bytes:
    """Encode a model."""
    metadata: dict[str, Any] = {"feature_names": list(model.feature_names)}
    if isinstance(model, TreeModel):
        metadata |= {name: getattr(model, name) for name in _OPTIONS}
        metadata["category_sets"] = [list(members) for members in model.category_sets]
        arrays = {name: getattr(model, name) for name in _NODE_ARRAYS}
    elif isinstance(model, LinearModel):
        arrays = {"weights": model.weights}
    else:
        arrays = {"mean": model.mean, "scale": model.scale}
        for number, (weights, biases) in enumerate(model.layers):
            arrays |= {f"weights{number}": weights, f"biases{number}": biases}
    return archive_bytes(Archive(type(model).__name__, metadata, arrays))


def read_reference(content: bytes) -> Model:
    """Decode a model that ``reference_bytes`` encoded; a DataError for anything else."""
    archive = read_archive(BytesIO(content))
    arrays, metadata = archive.arrays, archive.metadata
    try:
        names = tuple(map(str, metadata["feature_names"]))
        if archive.kind == "LinearModel":
            return LinearModel(names, arrays["weights"].astype(np.float64))
        if archive.kind == "NetworkModel":
            layers = tuple(
                (arrays[f"weights{number}"], arrays[f"biases{number}"])
                for number in range((len(arrays) - 2) // 2)
            )
            return NetworkModel(names, arrays["mean"], arrays["scale"], layers)
        kinds: dict[str, Any] = dict.fromkeys(_NODE_ARRAYS, np.int64)
        kinds |= dict.fromkeys(("threshold", "value"), np.float64)
        kinds |= dict.fromkeys(("missing_left", "zero_missing"), np.bool_)
        nodes: dict[str, Any] = {
            name: arrays[name].astype(kind, casting="same_kind") for name, kind in kinds.items()
        }
        return TreeModel(
            feature_names=names,
            category_sets=tuple(
                tuple(int(member) for member in members) for members in metadata["category_sets"]
            ),
            strict=bool(metadata["strict"]),
            base_score=float(metadata["base_score"]),
            floor_categories=bool(metadata["floor_categories"]),
            single_values=bool(metadata["single_values"]),
            single_precision=bool(metadata["single_precision"]),
            **nodes,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"is not the model of an export ({error!r})", hint="Export it again."
        ) from error
