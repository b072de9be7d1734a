"""The folder of ``podium train --run-dir``: a ranker, and what is needed to train it again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import podium
from podium.cli.fit_report import FitReport
from podium.cli.reading import Reading
from podium.cli.training import STUDIO, TrainingRequest
from podium.data.files import open_write
from podium.data.formats.letor import GROUP_SUFFIX, group_file
from podium.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from podium.rankers import Ranker

RANKER_FILE = "ranker.podium"
RECORD_FILE = "run.json"
_FORMAT = "podium run 1"
_LARGEST_RECORD = 1 << 24
_PACKAGES = (
    "numpy", "scipy", "numba", "pyarrow", "scikit-learn", "clarabel", "lightgbm",
    "xgboost", "xgboost-cpu", "torch",
)  # fmt: skip


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` has.

    Attributes:
        request: What was trained on what, and how.
        directory: Where the command ran; paths of the request may be relative to it.
        digests: The SHA-256 digest of each file or folder that was read, by its path.
        versions: The versions of Python and of the packages that compute.
        machine: The machine in words: bytes may differ on another.
        measures: The measures on validation queries.
        ranker: The SHA-256 digest of the ranker's file.
    """

    request: TrainingRequest
    directory: str
    digests: Mapping[str, str]
    versions: Mapping[str, str]
    machine: str
    measures: Mapping[str, float]
    ranker: str


@contextmanager
def recorded(
    folder: str, request: TrainingRequest, ranker: Ranker, report: FitReport
) -> Iterator[str]:
    """Yield the path to save a ranker at, and write the record of the run when it is saved."""
    if request.labels is not None and request.labels.startswith(STUDIO):
        raise ArgumentError(
            "a studio's labels change, so a run with them cannot be reproduced",
            hint="Save them first: podium studio project export.",
        )
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ArgumentError(f"{folder} is not an empty folder", hint="Name a new one.")
    # Before they are read: a file that changes later has another digest than the record's.
    digests = {
        read: digest for name in _files(request) for read, digest in _digests(name, name).items()
    }
    path.mkdir(parents=True, exist_ok=True)
    saved = path / RANKER_FILE
    yield str(saved)
    content = {
        "format": _FORMAT,
        "command": shlex.join(["podium", *sys.argv[1:]]),
        "directory": str(Path.cwd()),
        "request": asdict(request),
        "digests": digests,
        "versions": installed_versions(),
        "machine": machine(),
        "parameters": ranker.get_params(deep=False),
        "random_state": request.seed,
        "report": report.facts,
        "ranker": digest_of(saved),
    }
    with open_write(path / RECORD_FILE) as write:  # a record is complete or not there
        write((json.dumps(content, indent=2, default=repr) + "\n").encode())


def read_record(folder: str) -> RunRecord:
    """Read the record of a run; anything that is not one is a DataError."""
    path = Path(folder) / RECORD_FILE
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_RECORD + 1)
        content = json.loads(text) if len(text) <= _LARGEST_RECORD else None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError("its format is unknown")
        request = dict(content["request"])
        reading = Reading(**_checked(request.pop("reading"), Reading))
        checked = _checked(request, TrainingRequest)
        if str(checked["labels"] or "").startswith(STUDIO):
            raise ValueError("its labels are not a file")
        return RunRecord(
            request=TrainingRequest(**checked, reading=reading),
            directory=str(content["directory"]),
            digests={str(name): str(each) for name, each in content["digests"].items()},
            versions={str(name): str(each) for name, each in content["versions"].items()},
            machine=str(content["machine"]),
            measures={
                str(name): float(value)
                for name, value in content["report"].get("validation_measure", {}).items()
            },
            ranker=str(content["ranker"]),
        )
    except OSError as error:
        hint = "Name a folder that podium train --run-dir made."
        raise DataError("there is no record of a run", path=path, hint=hint) from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(
            f"is not a record of a run ({type(error).__name__}: {error})",
            path=path,
            hint="Train again with --run-dir.",
        ) from error


def _checked(values: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Check that a record has each field of a class, with a plain value of its type."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "reading"}
    if sorted(values) != sorted(hints):
        raise ValueError("its request has other fields")
    for name, value in values.items():
        hint = hints[name]
        allowed = get_args(hint) if isinstance(hint, UnionType) else (get_origin(hint) or hint,)
        if type(value) not in allowed:
            raise ValueError(f"its {name} is not of its type")
        if (type(value) is int and value < 0) or "\0" in str(value):
            raise ValueError(f"its {name} is not valid")
        if isinstance(value, str):
            os.fsencode(value)  # a UnicodeEncodeError, a ValueError, if it cannot be a path
    return dict(values)


def _files(request: TrainingRequest) -> list[str]:
    paths = (request.data, request.validation, request.labels, request.reading.group)
    files = [path for path in paths if path is not None]
    if "-" in files:
        raise ArgumentError(
            "standard input cannot be read again", hint="Save the data in a file first."
        )
    return files


def located(record: RunRecord) -> TrainingRequest:
    """Return the request with the paths of its files: from here, or from where the run was.

    A file whose digest is not the recorded one is a DataError.
    """
    paths: dict[str, str] = {}
    for name in _files(record.request):
        # Not that of Path, which raises an OSError for names that are too long.
        exists = os.path.exists(name)  # noqa: PTH110
        paths[name] = name if exists else str(Path(record.directory) / name)
        now = _digests(name, paths[name])
        then = {each: record.digests.get(each) for each in (name, f"{name}{GROUP_SUFFIX}")}
        for each, digest in then.items():
            if now.get(each) != digest:
                raise DataError(
                    "is not what the ranker was trained on: its digest differs from the record's",
                    path=paths[name] + each.removeprefix(name),
                    hint="Restore the file, or run podium reproduce where it is.",
                )
    content = {each.name: getattr(record.request, each.name) for each in fields(TrainingRequest)}
    for name in ("data", "validation", "labels"):
        content[name] = paths.get(content[name])
    reading = {each.name: getattr(content["reading"], each.name) for each in fields(Reading)}
    reading["group"] = paths.get(reading["group"])
    return TrainingRequest(**{**content, "reading": Reading(**reading)})


def _digests(name: str, path: str) -> dict[str, str]:
    """Digest a file, and the rows per query that are read with it."""
    beside = group_file(path)
    digests = {name: digest_of(path)}
    return digests if beside is None else digests | {f"{name}{GROUP_SUFFIX}": digest_of(beside)}


def digest_of(file_or_folder: str | os.PathLike[str]) -> str:
    """Return the SHA-256 digest of a file, or of the files of a folder and their names."""
    path = Path(file_or_folder)
    try:
        if not path.is_dir():
            if path.exists() and not path.is_file():  # a device has no end
                raise DataError("is not a file", path=path, hint="Name one, or a folder of shards.")
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        for each in sorted(each for each in path.iterdir() if each.is_file()):
            digest.update(f"{digest_of(each)}  {each.name}\n".encode())
        return digest.hexdigest()
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror})", path=path, hint="Check the path."
        ) from error


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that compute."""
    versions = {"python": platform.python_version(), "podium": podium.__version__}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def machine() -> str:
    """Return the machine in words: system, architecture and number of processors."""
    return f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} processors"
