"""Check that an export scores as the ranker did: by its files, or in a running engine."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from podium.errors import DataError
from podium.export.differences import Finding, other_findings, tree_findings
from podium.export.explanations import explain_scores
from podium.export.feature_names import shortened
from podium.export.folder import REFERENCE, ExportFolder
from podium.export.live import LiveEngine
from podium.export.reference import read_reference
from podium.export.targets import TARGETS
from podium.export.targets.base import EngineModel
from podium.export.trees import TreeModel

_MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
"""What reading a file of another structure raises; a DataError is a ValueError."""


@dataclass(frozen=True)
class Verification:
    """What was found.

    Attributes:
        rows: The number of golden rows.
        off: The rows whose scores differ by more than rounding explains.
        largest: The largest difference of a score.
        tolerance: The difference that rounding explains.
        findings: What explains the differences, and the files that are changed.
        changed: The files that are not as they were written.
    """

    rows: int
    off: tuple[int, ...]
    largest: float
    tolerance: float
    findings: tuple[Finding, ...]
    changed: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every file is as it was written, and every golden row scores the same."""
        return not self.off and not self.findings


def verify_export(
    folder: str | os.PathLike[str] | ExportFolder, engine: LiveEngine | None = None
) -> Verification:
    """Score the golden rows of an export, by its files or in a running engine.

    Without an engine the files are read by the target's rules, and every tree is compared: a
    change is found even if it is too small to matter for a score. In both cases each file must be
    as it was written, by its digest: what a feature is read from is in no golden row.

    Example:
        >>> import tempfile
        >>> from podium.export import export_ranker
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> verify_export(export_ranker(ranker, "opensearch", tempfile.mkdtemp())).holds
        True
    """
    export = folder if isinstance(folder, ExportFolder) else ExportFolder.open(folder)
    manifest = export.manifest
    golden = export.golden_rows()
    reference = read_reference(export.read(REFERENCE))
    features = manifest.features
    if engine is not None:
        scores = engine.score(export, golden.values)
        if scores.shape != golden.scores.shape:
            raise DataError(
                f"the engine scored {len(scores)} of {len(golden.scores)} golden rows",
                hint="Put the export there first.",
            )
    else:
        written = _read(export)
        scores = written.predict(golden.values)
    differences = np.abs(scores - golden.scores)
    off = np.flatnonzero(~(differences <= manifest.tolerance))
    findings: list[Finding] = []
    if engine is None:
        if isinstance(reference, TreeModel) and isinstance(written.model, TreeModel):
            findings = tree_findings(reference, written, features, golden.values)
        elif type(reference) is type(written.model) and not isinstance(reference, TreeModel):
            findings = other_findings(reference, written, tuple(off.tolist()))
    elif isinstance(reference, TreeModel):
        findings = explain_scores(
            reference, features, golden.values, scores, off, manifest.tolerance
        )
    changed = export.changed_files()
    if changed:
        files = [Finding(f"{name} is not as it was written", ()) for name in changed]
        findings = files + _other_fields(export) + findings
    return Verification(
        rows=len(scores),
        off=tuple(off.tolist()),
        largest=float(differences.max(initial=0.0)),
        tolerance=manifest.tolerance,
        findings=tuple(findings),
        changed=tuple(changed),
    )


def _other_fields(export: ExportFolder) -> list[Finding]:
    """Name the features that are read from the field of another feature."""
    target = TARGETS.named(export.manifest.target)
    names = set(export.engine_names)
    try:
        fields = target.fields(export.target_files())
    except _MALFORMED:
        return []  # that the file is another is a finding already
    others = {
        name: field
        for name, field in sorted(fields.items())
        if field != name and {name, field} <= names
    }
    return [
        Finding(f"features {name} and {field} are swapped", ())
        if others.get(field) == name
        else Finding(f"feature {name} is read from the field of {field}", ())
        for name, field in others.items()
        if not (others.get(field) == name and field < name)
    ]


def _read(export: ExportFolder) -> EngineModel:
    manifest = export.manifest
    target = TARGETS.named(manifest.target)
    try:
        return target.read(export.target_files(), manifest.features)
    except DataError as error:
        raise error.at(export.path) from error
    except _MALFORMED as error:
        raise DataError(
            f"the files for {target.title} are malformed ({shortened(repr(error))})",
            path=export.path,
            hint="Export it again.",
        ) from error
