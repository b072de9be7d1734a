"""Check that an export scores as the ranker did: by its files, or in a running engine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.coverage import coverage
from podium.export.differences import Finding, file_findings
from podium.export.explanations import explain_scores
from podium.export.folder import ExportFolder, GoldenRows, TextInput
from podium.export.fusions import fusion_findings, read_fusion
from podium.export.live import LiveEngine
from podium.export.targets import TARGETS
from podium.export.targets.base import EngineModel
from podium.export.texts import TextGraph, compare_scores
from podium.kernels import Doubles, Ints
from podium.scorers.feature_names import shortened
from podium.scorers.models import FittedModel

_MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
"""What reading a file of another structure raises; a DataError is a ValueError."""
_HALF_STEP = float(np.finfo(np.float32).epsneg)
_NO_ENGINE = "a running engine: no URL was given"
_OWN_FIELDS = "features of your own documents: golden rows have fields of their own"


@dataclass(frozen=True)
class Verification:
    """What was found.

    Attributes:
        rows: The number of golden rows.
        off: The rows whose scores differ by more than rounding explains.
        largest: The largest difference of a score.
        tolerance: The largest difference that rounding explains in any row.
        findings: What explains the differences, and the files that are changed.
        changed: The files that are not as they were written.
        unchecked: What this verification could not notice, in words.
    """

    rows: int
    off: tuple[int, ...]
    largest: float
    tolerance: float
    findings: tuple[Finding, ...]
    changed: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every file is as it was written, and every golden row scores the same."""
        return not self.off and not self.findings


def verify_export(
    folder: str | os.PathLike[str] | ExportFolder, engine: LiveEngine | None = None
) -> Verification:
    """Score the golden rows of an export, by its files or in a running engine.

    Without an engine the files are read by the target's rules, and every number is compared: a
    change is found even if it is too small to matter for a score. A graph for ONNX Runtime is
    scored by it, and only scores are compared. With an engine, scores are compared with what the
    files give by the engine's own arithmetic, where that is known to the last digit. In all cases
    each file must be as it was written, by its digest: what a feature is read from is in no golden
    row.

    A row is off if its difference is more than rounding explains for its own terms. If no golden
    row could be off, whatever the engine has, that is a finding.

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
    if manifest.texts is not None:
        return _verify_texts(export, manifest.texts, engine)
    if manifest.is_fusion:
        return _verify_fusion(export, engine)
    golden = export.golden_rows()
    reference = export.reference()
    features = manifest.features
    tolerance = score_tolerance(manifest.target, reference, golden.values)
    if engine is None:
        written = read_written(export, reference)
        scores = written.predict(golden.values)
        off = _off(scores, golden.scores, tolerance)
        unchecked = [_NO_ENGINE]
        if written.model is reference:  # its files say no more than their scores
            findings = explain_scores(reference, features, golden.values, scores, off, tolerance)
        else:
            target = TARGETS.named(manifest.target)
            findings = file_findings(reference, written, target, features, golden, off)
    else:
        scores = _engine_scores(export, engine, golden)
        off, findings, unchecked = _compare_live(export, reference, golden, scores, tolerance)
    if len(golden.scores) and not np.ptp(golden.scores):
        unchecked.append(f"the ranker: all {len(golden.scores)} golden rows have the same score")
    if export.changed_files():
        findings = _other_fields(export) + findings
    return _verification(export, scores, golden.scores, tolerance, off, findings, unchecked)


def _verify_texts(
    export: ExportFolder, texts: TextInput, engine: LiveEngine | None
) -> Verification:
    """Score the golden pairs of texts by the files of an export."""
    if engine is not None:
        raise ArgumentError("no engine scores texts", hint="Leave URL out.")
    pairs, expected = export.golden_pairs()
    tolerance = np.full(len(pairs), export.manifest.tolerance)
    scores = TextGraph.open(export.target_files(), texts, export.path).predict(pairs)
    findings = compare_scores(scores, pairs, expected, export.manifest.tolerance)
    off = _off(scores, expected, tolerance)
    return _verification(export, scores, expected, tolerance, off, findings, [])


def _verify_fusion(export: ExportFolder, engine: LiveEngine | None) -> Verification:
    """Score the documents of golden queries by the files of an export, or in a running engine."""
    golden = export.golden_rows()
    assert golden.offsets is not None  # those of a fusion have queries
    tolerance = np.full(len(golden.scores), export.manifest.tolerance)
    with _reading(export, export.manifest.target):
        target, written = read_fusion(export)
        findings = fusion_findings(export, written)
        if engine is None:
            scores = target.scores(written, golden.values, golden.offsets)
    if engine is not None:
        scores = _engine_scores(export, engine, golden)
    own = "lists of your own documents: golden queries have fields of their own"
    unchecked = [_NO_ENGINE, target.unverified] if engine is None else [own]
    off = _off(scores, golden.scores, tolerance)
    return _verification(
        export, scores, golden.scores, tolerance, off, findings, filter(None, unchecked)
    )


def _engine_scores(export: ExportFolder, engine: LiveEngine, golden: GoldenRows) -> Doubles:
    scores = engine.score(export, golden.values)
    if scores.shape != golden.scores.shape:
        raise DataError(
            f"the engine scored {len(scores)} of {len(golden.scores)} golden rows",
            hint="Put the export there first.",
        )
    return scores


def _verification(
    export: ExportFolder,
    scores: Doubles,
    expected: Doubles,
    tolerance: Doubles,
    off: Ints,
    findings: Iterable[Finding],
    unchecked: Iterable[str],
) -> Verification:
    changed = export.changed_files()
    files = [Finding(f"{name} is not as it was written", ()) for name in changed]
    return Verification(
        rows=len(scores),
        off=tuple(off.tolist()),
        largest=float(np.abs(scores - expected).max(initial=0.0)),
        tolerance=float(tolerance.max(initial=0.0)),
        findings=(*files, *findings),
        changed=tuple(changed),
        unchecked=tuple(unchecked),
    )


def score_tolerance(target: str, model: FittedModel, values: Doubles) -> Doubles:
    """Return how far a target's score of each row may be from the ranker's own, by rounding."""
    writer = TARGETS.named(target)
    engine = np.float32 if writer.single_precision else np.float64
    own = np.float32 if model.single_precision else np.float64
    bound = model.rounding_bound(values, engine) + model.rounding_bound(values, own)
    if writer.single_scores and not writer.single_precision:
        # The constant that makes no score negative is rounded, and then the score with it.
        bound += 3 * _HALF_STEP * model.largest_shift
    return bound


def _compare_live(
    export: ExportFolder,
    reference: FittedModel,
    golden: GoldenRows,
    scores: Doubles,
    tolerance: Doubles,
) -> tuple[Ints, list[Finding], list[str]]:
    """Return the rows that are off in an engine, what explains them, and what none could show."""
    features = export.manifest.features
    try:
        written = read_written(export, reference)
    except DataError:  # the file is not as it was written, which is a finding already
        return _off(scores, golden.scores, tolerance), [], []
    off = far = _off(scores, golden.scores, tolerance)
    if written.single_precision:  # its arithmetic is known: nothing is left to rounding
        off = np.union1d(off, np.flatnonzero(scores != written.predict(golden.values)))
    findings = explain_scores(reference, features, golden.values, scores, far, tolerance)
    if len(off) and not len(far):
        text = (
            "the last digits of scores differ: a number was changed a little, or the engine adds "
            "in another order than every version that was tried"
        )
        findings.append(Finding(text, tuple(off.tolist())))
    covered = coverage(written, golden.values)
    if covered.numbers and not covered.shown:
        findings.append(Finding("no golden row could be off: nothing was verified", ()))
    step = np.spacing(np.float32(np.abs(golden.scores).max(initial=0.0)))
    last_digit = f"changes of a number by less than {step:.2g}, the last digit of the scores"
    return off, findings, [*covered.unshown, last_digit, _OWN_FIELDS]


def _off(scores: Doubles, expected: Doubles, tolerance: Doubles) -> Ints:
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(~(np.abs(scores - expected) <= tolerance))


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


def read_written(export: ExportFolder, reference: FittedModel) -> EngineModel:
    """Return what the target computes from the files of an export of a model."""
    manifest = export.manifest
    target = TARGETS.named(manifest.target)
    with _reading(export, target.title):
        return target.read(export.target_files(), manifest.features, reference)


@contextmanager
def _reading(export: ExportFolder, title: str) -> Iterator[None]:
    """Name the folder in errors of its files."""
    try:
        yield
    except DataError as error:
        raise error.at(export.path) from error
    except _MALFORMED as error:
        raise DataError(
            f"the files for {title} are malformed ({shortened(repr(error))})",
            path=export.path,
            hint="Export it again.",
        ) from error
