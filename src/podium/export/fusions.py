"""Exports of fusions, with golden queries whose documents the engine scores the same.

::

    hybrid.toml       the fusion
    golden.jsonl      documents of golden queries: their score in each list, and the fused one
    manifest.json     what it is, written last
    ...               the files of the target
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np

from podium.aggregation import stack_runs
from podium.data import Rankings
from podium.errors import DataError
from podium.export.differences import Finding
from podium.export.folder import (
    FUSION,
    ExportFolder,
    ExportManifest,
    Feature,
    GoldenRows,
    write_folder,
)
from podium.export.targets.base import engine_names, version_number
from podium.export.targets.fusions import FUSION_TARGETS, FusionRequest, FusionTarget
from podium.hybrid.fusion import Fusion, fuse
from podium.kernels import Doubles, Ints
from podium.scorers.single_precision import as_single

_TOP = 10
_RANDOM = 40
_MOST_QUERIES = 200
"""The most queries of runs that become golden."""


def write_fusion(
    fusion: Fusion,
    target: str,
    folder: str | os.PathLike[str],
    *,
    model_name: str,
    engine_version: str | None = None,
    extractors: Mapping[str, Any] | None = None,
    runs: Mapping[str, Rankings] | None = None,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> ExportFolder:
    """Write a fusion in a target's form.

    Args:
        fusion: The fusion.
        target: ``opensearch``, ``elasticsearch``, ``vespa`` or ``solr``.
        folder: The folder to write.
        model_name: Its name in the engine.
        engine_version: The version of the engine; by default the oldest that can express it.
        extractors: How the engine finds each list, by the list's name.
        runs: The lists of real queries by name, which become golden beside generated ones.
        inputs: Files that the export is made from: none of them is written over.
    """
    engine = FUSION_TARGETS.named(target)
    oldest = engine.default_version(fusion)
    number = engine_version or oldest
    if version_number(number) < version_number(oldest):
        engine.refuse(f"this in version {number}", f"It can from {oldest} on.")
    functions = {f"{name}_or_absent" for name in fusion.lists}  # of Vespa's profile
    names = engine_names(fusion.lists, engine.reserved_names | functions)
    request = FusionRequest(
        fusion, names, model_name, number, _by_engine_name(extractors or {}, fusion.lists, names)
    )
    files = engine.write(request)
    values, offsets = _golden_lists(fusion, runs)
    scores = engine.scores(engine.read(files, names), values, offsets)
    own = fuse(values, offsets, fusion)
    limits = [*engine.limits(fusion), *_other_orders(engine.title, own, scores, offsets)]
    if engine.unverified:
        limits.append(f"{engine.unverified[0].upper()}{engine.unverified[1:]}.")
    content = fusion.to_toml().encode()
    manifest = ExportManifest(
        target=engine.name,
        engine_version=number,
        model_name=model_name,
        features=tuple(map(Feature, fusion.lists, names)),
        ranker={"kind": "Fusion", "sha256": hashlib.sha256(content).hexdigest()},
        tolerance=engine.tolerance * float(np.abs(scores).max(initial=0.0)),
        versions={"podium": version("podium-rank")},
        golden={"queries": len(offsets) - 1, "rows": len(values)},
        limits=tuple(limits),
    )
    golden = GoldenRows(values, scores, offsets)
    return write_folder(folder, manifest, golden.lines(), {**files, FUSION: content}, inputs)


def read_fusion(export: ExportFolder) -> tuple[FusionTarget, Fusion]:
    """Return the target of an export, and the fusion that its files describe there."""
    engine = FUSION_TARGETS.named(export.manifest.target)
    return engine, engine.read(export.target_files(), tuple(export.engine_names))


def fusion_findings(export: ExportFolder, written: Fusion) -> list[Finding]:
    """Return what the target's files have otherwise than the fusion."""
    own = Fusion.load(export.path / FUSION)
    findings = []
    for name, weight, other in zip(own.lists, own.weights, written.weights, strict=True):
        if abs(weight - other) > 1e-9:
            findings.append(Finding(f"list {name} has weight {other:.3g}, not {weight:.3g}", ()))
    for name in ("normalization", "rank_constant"):
        if getattr(own, name) != getattr(written, name):
            text = f"{name} is {getattr(written, name)}, not {getattr(own, name)}"
            findings.append(Finding(text, ()))
    return findings


def _by_engine_name(
    extractors: Mapping[str, Any], lists: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    name_of = dict(zip(lists, names, strict=True))
    for name in extractors:
        if name not in name_of:
            raise DataError(
                f"{name[:100]!r} is not a list of the fusion", hint=f"Lists: {', '.join(lists)}."
            )
    return {name_of[name]: extractor for name, extractor in extractors.items()}


def _golden_lists(fusion: Fusion, runs: Mapping[str, Rankings] | None) -> tuple[Doubles, Ints]:
    """Return generated queries with all edge cases, and queries of runs."""
    queries = generated_lists(len(fusion.lists), np.random.default_rng(0))
    if runs is not None:
        stacked = stack_runs([runs[name] for name in fusion.lists])
        chosen = np.unique(
            np.linspace(0, len(stacked.offsets) - 2, _MOST_QUERIES).round().astype(np.int64)
        )
        spans = list(pairwise(stacked.offsets.tolist()))
        queries += [stacked.votes[slice(*spans[query])] for query in chosen]
    values = as_single(np.concatenate(queries)).astype(np.float64)
    return values, np.cumsum([0, *map(len, queries)])


def generated_lists(lists: int, rng: np.random.Generator, count: int = _RANDOM) -> list[Doubles]:
    """Return lists of queries: a row for each document, NaN where a list does not have it.

    One document, equal scores, ties, an empty list, documents of one list only, and scores of many
    sizes; none is 0 or less, for scores of search engines are not.
    """
    nan = np.nan
    edge = [np.full((1, lists), 2.5), np.full((4, lists), 0.75), np.full((lists, lists), nan)]
    np.fill_diagonal(edge[2], 3.0)
    alone = np.full((3, lists), nan)
    alone[:, 0] = [5.0, 4.0, 4.0]
    alone[:1, -1] = 0.5
    close = np.full((3, lists), 1.0)
    close[1], close[2] = np.nextafter(np.float32(1), np.float32(2)), 1 + 2e-4
    queries = [*edge, alone, close]
    for number in range(count):
        values = rng.lognormal(0.0, 1.0 + number % 3, (int(rng.integers(1, 31)), lists))
        if number % 4 == 0:
            values = np.ceil(4 * values) / 4  # ties
        values *= 10.0 ** rng.integers(-3, 4, lists)
        values[rng.random(values.shape) < rng.choice([0.0, 0.3, 0.7])] = nan
        values[np.isnan(values).all(axis=1), 0] = 1.0
        queries.append(values)
    return queries


def _other_orders(title: str, own: Doubles, scores: Doubles, offsets: Ints) -> list[str]:
    """Return in how many queries the target has other first documents than Podium."""
    others = 0
    for begin, end in pairwise(offsets.tolist()):
        first, second = (
            np.argsort(-each[begin:end], kind="stable")[:_TOP] for each in (own, scores)
        )
        others += not np.array_equal(first, second)
    if not others:
        return []
    return [
        f"{title} has another order of the first {_TOP} documents than Podium in {others} of "
        f"{len(offsets) - 1} golden queries."
    ]
