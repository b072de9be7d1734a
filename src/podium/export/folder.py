"""The folder of an export: what goes to the target, and what proves that it scores the same there.

::

    manifest.json     what was exported, for which target, and how its features are named
    golden.jsonl      one row per line: its feature values (null is absent) and the expected score
    reference.podium  the model in the form that the writer read, to explain a difference
    ...               the files of the target, such as featureset.json and model.json
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from itertools import pairwise, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from podium.data.atomic import atomic_write
from podium.data.definitions_hash import checked_hash
from podium.data.files import read_bounded, writing
from podium.data.json_lines import json_line, json_lines, parse_json
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.rankers.storage import Archive, archive_bytes, read_archive
from podium.scorers.feature_names import shortened
from podium.scorers.models import FittedModel

MANIFEST, GOLDEN, REFERENCE = "manifest.json", "golden.jsonl", "reference.podium"
FUSION = "hybrid.toml"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
"""The names of models and of features in a target, which become parts of URLs and of queries."""

_Row = TypeVar("_Row")

_FORMAT = 1
_MOST_BYTES = 1 << 30


def feature_set_name(features: Mapping[str, Any], prefix: str = "podium_features") -> str:
    """Return the name of a feature set or feature store, which ends with a hash of what it holds.

    Sets with other features have another name, so none has to be replaced.

    Args:
        features: How the engine computes each feature, by name.
        prefix: What the name begins with.

    Example:
        >>> feature_set_name({"title": {"match": {"title": "{{query}}"}}})
        'podium_features_6a76db1ba0da'
    """
    content = json.dumps(features, sort_keys=True, separators=(",", ":")).encode()
    return f"{prefix}_{hashlib.sha256(content).hexdigest()[:12]}"


@dataclass(frozen=True)
class Feature:
    """A feature of an export.

    Attributes:
        name: Its name in the ranker.
        engine_name: Its name in the target.
        absent: The value that the target gives it where a document has none; None if the value
            stays missing.
    """

    name: str
    engine_name: str
    absent: float | None = None


@dataclass(frozen=True)
class GoldenRows:
    """Rows with known scores.

    Attributes:
        values: One row per document, one column per feature; NaN if a feature is absent.
        scores: The score of each row by the ranker itself.
        offsets: Where each query's rows begin, and the number of rows last; None if a row's score
            does not depend on others.
    """

    values: Doubles
    scores: Doubles
    offsets: Ints | None = None

    def lines(self) -> bytes:
        """Return them as lines of JSON."""
        rows = zip(self.values.tolist(), self.scores.tolist(), strict=True)
        lines: list[dict[str, Any]] = [
            {"values": [None if np.isnan(value) else value for value in row], "score": score}
            for row, score in rows
        ]
        if self.offsets is not None:
            for query, (begin, end) in enumerate(pairwise(self.offsets.tolist())):
                for line in lines[begin:end]:
                    line["query"] = query
        return b"".join(map(json_line, lines))


@dataclass(frozen=True)
class TextInput:
    """What a graph that reads texts takes.

    Attributes:
        architecture: ``cross-encoder`` or ``bi-encoder``.
        max_length: The maximum number of tokens that the graph is given.
        scale: What similarities of embeddings are multiplied by; 1 for a cross-encoder.
    """

    architecture: str
    max_length: int
    scale: float


@dataclass(frozen=True)
class ExportManifest:
    """What an export is.

    Attributes:
        target: The target's name, such as ``opensearch``.
        engine_version: The oldest version of the target that scores as the ranker does.
        model_name: The model's name in the target.
        features: Its features, in the order of the columns of the golden rows.
        ranker: The kind of the exported ranker or model file, and the SHA-256 of its bytes.
        tolerance: The largest difference of a score that rounding explains.
        measure: The ranker's mean measure on validation data, by its name.
        versions: The versions of Podium and of the packages that wrote the export.
        golden: How much of the model the golden rows reach.
        limits: What the target does differently, in words.
        files: The SHA-256 of every other file of the folder.
        definitions: The hash of the definitions that the features follow, or None.
        texts: What it reads if that is texts; its golden rows are pairs of texts then.
    """

    target: str
    engine_version: str
    model_name: str
    features: tuple[Feature, ...]
    ranker: dict[str, str]
    tolerance: float
    measure: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    golden: dict[str, int] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    definitions: str | None = None
    texts: TextInput | None = None

    @property
    def is_fusion(self) -> bool:
        """Whether it fuses lists: its features are their names, and queries have golden rows."""
        return self.ranker.get("kind") == "Fusion"


@dataclass(frozen=True)
class ExportFolder:
    """An export on disk.

    Attributes:
        path: The folder.
        manifest: What it is.
    """

    path: Path
    manifest: ExportManifest

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ExportFolder:
        """Read the manifest of a folder; a DataError if it is not an export."""
        folder = Path(path)
        file = folder / MANIFEST
        try:
            content = parse_json(_read(file))
            if content.pop("format") != _FORMAT:
                raise ValueError("it was written by another version of Podium")
            features = tuple(Feature(**entry) for entry in content.pop("features"))
            limits = tuple(map(str, content.pop("limits")))
            texts = content.pop("texts", None)
            texts = None if texts is None else TextInput(**texts)
            manifest = ExportManifest(features=features, limits=limits, texts=texts, **content)
            _check_manifest(manifest)
        except DataError as error:
            raise error.at(file) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"is not the manifest of an export ({error})", path=file, hint="Export it again."
            ) from error
        return cls(folder, manifest)

    @property
    def engine_names(self) -> list[str]:
        """The names of the features in the target, in the order of the golden rows' columns."""
        return [feature.engine_name for feature in self.manifest.features]

    def read(self, name: str) -> bytes:
        """Return the bytes of a file of the export."""
        if name not in self.manifest.files:
            raise DataError("no such file in the export", path=self.path / name, hint="Export it.")
        return _read(self.path / name)

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file of the export."""
        try:
            return parse_json(self.read(name))
        except DataError as error:
            raise error.at(self.path / name) from error

    def reference(self) -> FittedModel:
        """Return the exported model, whose parts explain a difference."""
        return read_reference(self.read(REFERENCE))

    def target_files(self) -> dict[str, bytes]:
        """Return the files that are written for the target, by name."""
        names = sorted(set(self.manifest.files) - {GOLDEN, REFERENCE, FUSION})
        return {name: self.read(name) for name in names}

    def golden_pairs(self) -> tuple[list[tuple[str, str]], Doubles]:
        """Return the golden pairs of texts and their scores."""

        def parse(content: dict[str, Any]) -> tuple[tuple[str, str], float]:
            pair = str(content["query"]), str(content["document"])
            return pair, float(content["score"])

        rows = self._golden(parse)
        return [pair for pair, _ in rows], np.array([score for _, score in rows])

    def changed_files(self) -> list[str]:
        """Return the files whose bytes are not those that were written."""
        return [
            name
            for name, digest in sorted(self.manifest.files.items())
            if hashlib.sha256(self.read(name)).hexdigest() != digest
        ]

    def golden_rows(self) -> GoldenRows:
        """Return the golden rows."""
        width = len(self.manifest.features)

        def parse(content: dict[str, Any]) -> tuple[list[float], float, int]:
            values = [np.nan if value is None else float(value) for value in content["values"]]
            if len(values) != width:
                raise DataError(f"a row has not {width} values", hint="Export it again.")
            return values, float(content["score"]), int(content["query"]) if fused else 0

        fused = self.manifest.is_fusion
        rows = self._golden(parse)
        values = np.array([row for row, _, _ in rows], np.float64).reshape(-1, width)
        scores = np.array([score for _, score, _ in rows])
        if not fused:
            return GoldenRows(values, scores)
        starts = np.flatnonzero(np.diff([query for _, _, query in rows], prepend=-1))
        return GoldenRows(values, scores, np.append(starts, len(rows)))

    def _golden(self, parse: Callable[[dict[str, Any]], _Row]) -> list[_Row]:
        path = self.path / GOLDEN
        try:
            return list(json_lines(path, parse))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"are not golden rows ({shortened(repr(error))})",
                path=path,
                hint="Export it again.",
            ) from error


def _check_manifest(manifest: ExportManifest) -> None:
    """Raise a ValueError for what would end up in a path, a request or a calculation."""
    required = {GOLDEN}
    if manifest.texts is None:
        required.add(FUSION if manifest.is_fusion else REFERENCE)
    if not required <= set(manifest.files):
        raise ValueError("it does not list its golden rows and its model")
    if manifest.texts is not None:
        _check_texts(manifest.texts)
    for name in manifest.files:
        if Path(name).name != name:
            raise ValueError(f"{shortened(repr(name))} is not a file of the folder")
    if not NAME.fullmatch(manifest.model_name):
        raise ValueError(f"{shortened(repr(manifest.model_name))} is not a name")
    for feature in manifest.features:
        if not NAME.fullmatch(feature.engine_name):
            raise ValueError(f"{shortened(repr(feature.engine_name))} is not a name")
        if feature.absent is not None and not math.isfinite(feature.absent):
            raise ValueError("an absent value is not finite")
    if not manifest.tolerance >= 0:
        raise ValueError("the tolerance is not a number")
    checked_hash(manifest.definitions)


def _check_texts(texts: TextInput) -> None:
    if texts.architecture not in ("cross-encoder", "bi-encoder"):
        raise ValueError("it has another architecture")
    if type(texts.max_length) is not int or texts.max_length < 1:
        raise ValueError("its maximum length is not a positive integer")
    if not texts.scale > 0:
        raise ValueError("its scale is not a positive number")


def write_folder(
    path: str | os.PathLike[str],
    manifest: ExportManifest,
    golden: bytes,
    files: Mapping[str, bytes],
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> ExportFolder:
    """Write an export, its manifest last: a folder with a manifest is complete.

    Args:
        path: The folder.
        manifest: What the export is; digests of files are added.
        golden: The lines of rows with the scores that they have.
        files: The other files by their names.
        inputs: Files that are not to be written over.
    """
    folder = Path(path)
    contents = {**files, GOLDEN: golden}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    described = {"format": _FORMAT, **asdict(manifest), "files": dict(sorted(digests.items()))}
    for name in ("definitions", "texts"):
        if described[name] is None:
            del described[name]
    text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False).encode()
    _check_manifest(replace(manifest, files=digests))
    # All is encoded and checked before the folder is made: an export that fails leaves none.
    stale = _files_of_export(folder) - contents.keys()
    _refuse_to_replace(folder, {MANIFEST, *contents, *stale}, inputs)
    with writing(folder), ExitStack() as renames:
        folder.mkdir(parents=True, exist_ok=True)
        # All is on the disk before a file of an earlier export is replaced. What is opened first,
        # the manifest, gets its name last.
        for name, content in {MANIFEST: text + b"\n", **contents}.items():
            file = renames.enter_context(atomic_write(folder / name))
            file.write(content)
            file.flush()
        # Files left by an export to another target must not be uploaded.
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
    return ExportFolder.open(folder)


def _refuse_to_replace(
    folder: Path, names: Set[str], inputs: Sequence[str | os.PathLike[str]]
) -> None:
    if (folder / MANIFEST).is_file() and not _is_manifest((folder / MANIFEST).read_bytes()):
        raise ArgumentError(f"{folder / MANIFEST} is not of an export", hint="Name another folder.")
    for name, path in product(sorted(names), inputs):
        with suppress(OSError):
            if (folder / name).samefile(path):
                raise ArgumentError(
                    f"{folder / name} is one of the files to read", hint="Name another folder."
                )


def _is_manifest(content: bytes) -> bool:
    """Whether a file is the manifest of an export, if not one that can be opened."""
    try:
        manifest = json.loads(content)
    except ValueError:
        return False
    expected = {"format", "target", "golden", "files"}
    return isinstance(manifest, dict) and expected <= manifest.keys()


def _files_of_export(folder: Path) -> set[str]:
    try:
        return set(ExportFolder.open(folder).manifest.files)
    except DataError:
        return set()


def _read(file: Path) -> bytes:
    return read_bounded(file, _MOST_BYTES, hint="Export it again.")


def reference_bytes(model: FittedModel) -> bytes:
    """Encode a model."""
    values, arrays = model.content()
    metadata = {"feature_names": list(model.feature_names), **values}
    return archive_bytes(Archive(type(model).__name__, metadata, arrays))


def read_reference(content: bytes) -> FittedModel:
    """Decode a model that ``reference_bytes`` encoded; a DataError for anything else."""
    archive = read_archive(BytesIO(content))
    try:
        names = tuple(map(str, archive.metadata["feature_names"]))
        kind = FittedModel.KINDS[archive.kind]
        return kind.from_content(names, archive.metadata, archive.arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"is not the model of an export ({error!r})", hint="Export it again."
        ) from error
