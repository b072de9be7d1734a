"""Write an export, and check it before anyone uses it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import Rankings
from podium.data.json_lines import json_line
from podium.errors import ArgumentError, DataError
from podium.export.folder import (
    NAME,
    REFERENCE,
    ExportFolder,
    ExportManifest,
    Feature,
    GoldenRows,
    reference_bytes,
    write_folder,
)
from podium.export.fusions import write_fusion
from podium.export.golden import golden_values
from podium.export.reading import read_ranker
from podium.export.targets import TARGETS
from podium.export.targets.base import EngineModel, Request, Target, engine_names
from podium.export.texts import TEXT_TOLERANCE, compare_scores, text_graph
from podium.export.verifying import score_tolerance
from podium.hybrid import Fusion
from podium.kernels import Doubles, Floats
from podium.rankers import Ranker
from podium.scorers.feature_names import shortened
from podium.scorers.models import FittedModel
from podium.scorers.single_precision import as_single


@dataclass(frozen=True)
class ExportSettings:
    """How to export a ranker.

    Attributes:
        engine_version: The version of the target; by default the oldest that can do what is needed.
        model_name: The model's name in the target.
        never_missing: Whether every feature always has a value.
        extractors: How the target computes features, in its own terms, by the features' names in
            the target or in the ranker.
        fields: Whether every feature is a field of the documents, although the ranker's features
            follow definitions, which may compute them otherwise.
        golden_rows: The maximum number of golden rows that are searched for splits.
        sample: Real rows, to draw ordinary values of golden rows from.
        measure: The ranker's measure on validation data, by its name.
        raw: Whether to write trees as XGBoost saves them, for the targets ``opensearch`` and
            ``o19s``: the files are smaller.
        inputs: Files that the export is made from: none of them is written over.
        runs: The lists of real queries, for a fusion: they become golden rows, beside generated
            ones.
    """

    engine_version: str | None = None
    model_name: str = "podium"
    never_missing: bool = False
    extractors: Mapping[str, Any] = field(default_factory=dict)
    fields: bool = False
    golden_rows: int = 2000
    sample: Floats | None = None
    measure: Mapping[str, float] = field(default_factory=dict)
    raw: bool = False
    inputs: Sequence[str | os.PathLike[str]] = ()
    runs: Mapping[str, Rankings] | None = None


def export_ranker(
    ranker: Ranker | Fusion | str | os.PathLike[str],
    target: str,
    folder: str | os.PathLike[str],
    options: ExportSettings | None = None,
) -> ExportFolder:
    """Write a ranker in a target's format, with golden rows that the written files score alike.

    Args:
        ranker: A fitted ranker, or the path of a saved one or of a model of LightGBM, XGBoost or
            CatBoost; or a fusion of lists, or the path of one (``.toml``).
        target: The target's name: ``onnx``, ``opensearch``, ``o19s``, ``solr``, ``elasticsearch``
            or ``vespa``.
        folder: The folder to write.
        options: How.

    Raises:
        ArgumentError: If the target cannot express the model.

    Example:
        >>> import tempfile
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> export = export_ranker(ranker, "opensearch", tempfile.mkdtemp())
        >>> export.engine_names
        ['f1']
    """
    options = options or ExportSettings()
    if isinstance(ranker, str | os.PathLike) and os.path.realpath(ranker) == os.path.realpath(
        folder
    ):
        raise ArgumentError(f"{folder} is the ranker's own folder", hint="Name another folder.")
    if not NAME.fullmatch(options.model_name):
        raise ArgumentError(
            f"{shortened(repr(options.model_name))} cannot be the name of a model",
            hint="Use letters, digits and underscores, no digit first.",
        )
    if isinstance(ranker, Fusion) or (
        not isinstance(ranker, Ranker) and Path(ranker).suffix == ".toml"
    ):
        return _export_fusion(ranker, target, folder, options)
    fitted = ranker if isinstance(ranker, Ranker) else read_ranker(ranker)
    writer = TARGETS.named(target)
    inputs = [*options.inputs, *([] if fitted is ranker else [ranker])]
    if not fitted.reads_features:
        return _export_texts(fitted, writer, folder, options, inputs)
    model = fitted.fitted_model()
    definitions = fitted.definitions_hash_
    if definitions and writer.computes_features and not (options.extractors or options.fields):
        raise ArgumentError(
            f"the ranker's features follow definitions ({definitions[:12]}), and {writer.title} "
            "would read each from a field of its name",
            hint="Give the definitions or extractors (--definitions, --extractors), or say that "
            "documents have a field for each feature (--fields).",
        )
    names = engine_names(model.feature_names, writer.reserved_names)
    request = Request(
        model=model,
        names=names,
        model_name=options.model_name,
        version=options.engine_version or writer.default_version,
        never_missing=options.never_missing,
        extractors=_by_engine_name(options.extractors, model.feature_names, names),
        raw=options.raw,
    )
    written = writer.write(request)
    values, reached = golden_values(
        model,
        most_rows=options.golden_rows,
        sample=options.sample,
        can_miss=not options.never_missing and model.takes_missing,
        negative=writer.negative_values,
        avoided=written.avoided,
    )
    features = tuple(
        Feature(name, engine_name, absent)
        for name, engine_name, absent in zip(
            model.feature_names, names, written.absent, strict=True
        )
    )
    engine_model = writer.read(written.files, features, model)
    values = _with_defaults(values, engine_model.absent, features)
    scores = _scores(fitted, values)
    tolerance = score_tolerance(writer.name, model, values)
    manifest = ExportManifest(
        target=writer.name,
        engine_version=request.version,
        model_name=request.model_name,
        features=features,
        ranker={
            "kind": fitted.kind,
            "sha256": hashlib.sha256(fitted.to_bytes()).hexdigest(),
        },
        tolerance=float(tolerance.max(initial=0.0)),
        measure=dict(options.measure),
        versions={"podium": version("podium-rank"), **_versions(writer.packages)},
        golden=reached,
        limits=(*_early_stop(model), *written.limits),
        definitions=definitions,
    )
    files = {**written.files, REFERENCE: reference_bytes(model)}
    _check(writer.title, engine_model, GoldenRows(values, scores), tolerance)
    return write_folder(folder, manifest, GoldenRows(values, scores).lines(), files, inputs)


def _export_fusion(
    fusion: Fusion | str | os.PathLike[str],
    target: str,
    folder: str | os.PathLike[str],
    options: ExportSettings,
) -> ExportFolder:
    """Write a fusion in a target's form; a list's extractor says how the engine finds it."""
    saved = [] if isinstance(fusion, Fusion) else [fusion]
    return write_fusion(
        fusion if isinstance(fusion, Fusion) else Fusion.load(fusion), target, folder,
        model_name=options.model_name, engine_version=options.engine_version,
        extractors=options.extractors, runs=options.runs, inputs=[*options.inputs, *saved],
    )  # fmt: skip


def _export_texts(
    ranker: Any,
    writer: Target,
    folder: str | os.PathLike[str],
    options: ExportSettings,
    inputs: Sequence[str | os.PathLike[str]],
) -> ExportFolder:
    """Write a text ranker as a graph, with pairs of texts that prove that it scores the same.

    Raises:
        ArgumentError: If its weights are too large.
        DataError: If the graph scores pairs of texts otherwise, or ranks others first.
    """
    if not writer.takes_texts:
        raise ArgumentError(f"{writer.name} cannot score texts", hint="Give --to onnx.")
    graph, pairs, scores = text_graph(ranker)
    manifest = ExportManifest(
        target=writer.name,
        engine_version=options.engine_version or writer.default_version,
        model_name=options.model_name,
        features=(),
        ranker={"kind": ranker.kind, "sha256": hashlib.sha256(ranker.to_bytes()).hexdigest()},
        tolerance=TEXT_TOLERANCE * max(1.0, float(np.abs(scores).max())),
        versions={
            "podium": version("podium-rank"),
            **_versions((*writer.packages, "torch", "sentence-transformers")),
        },
        golden={"rows": len(scores)},
        texts=graph.texts,
    )
    findings = compare_scores(graph.predict(pairs), pairs, scores, manifest.tolerance)
    if findings:
        raise DataError(
            "the graph does not score as the ranker does "
            f"({'; '.join(finding.text for finding in findings)})",
            path=folder,
            hint="Report this as an error of Podium, with the ranker's architecture.",
        )
    lines = [
        json_line({"query": query, "document": document, "score": score})
        for (query, document), score in zip(pairs, scores.tolist(), strict=True)
    ]
    files = [path for path in inputs if not Path(path).is_dir()]
    return write_folder(folder, manifest, b"".join(lines), graph.files, files)


def _early_stop(model: FittedModel) -> tuple[str, ...]:
    if not model.unused:
        return ()
    return (
        f"The model was stopped early: its {model.unused} trees after the best iteration are left "
        "out, as by XGBRanker.predict and unlike Booster.predict without iteration_range.",
    )


def _scores(fitted: Ranker, values: Doubles) -> Doubles:
    if not len(values):
        return np.empty(0)
    return fitted.score_query(as_single(values) if fitted.single_values else values)


def _by_engine_name(
    extractors: Mapping[str, Any], names: tuple[str, ...], engine: tuple[str, ...]
) -> dict[str, Any]:
    of = dict(zip(names, engine, strict=True))
    known = {of.get(name, name): extractor for name, extractor in extractors.items()}
    unknown = sorted(set(known) - set(engine))
    if unknown:
        problem = f"{shortened(ascii(unknown[0]))} is not a feature of the ranker"
        raise DataError(problem, hint="Check its name.")
    return known


def _with_defaults(values: Doubles, absent: Doubles, features: tuple[Feature, ...]) -> Doubles:
    """Fill in what extractors give documents without a value: the ranker gets it, too."""
    known = np.array([np.nan if each.absent is None else each.absent for each in features])
    default = np.isfinite(absent) & (absent != known)
    return np.where(np.isnan(values) & default, absent, values)


def _check(title: str, written: EngineModel, golden: GoldenRows, tolerance: Doubles) -> None:
    off = np.abs(written.predict(golden.values) - golden.scores)
    if not (off <= tolerance).all():
        raise DataError(
            f"{title} would score a golden row {off.max():.3g} off, and nothing is written",
            hint="Report this as an error of Podium, with the model.",
        )


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
