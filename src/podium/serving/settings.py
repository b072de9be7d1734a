"""What the service serves, and its limits."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from podium.errors import ArgumentError
from podium.serving.experiment import InterleaveSettings
from podium.serving.search_settings import SearchSettings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")


class ModelSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version of a model, and the file that it is read from.

    Attributes:
        name: The model's name.
        version: Its version, a positive integer.
        path: A saved ranker, or a model file of LightGBM, XGBoost or CatBoost.
    """

    name: str
    version: int
    path: str


class ServingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the service runs.

    Attributes:
        models: The models; the first is the default.
        shadows: Models that score the requests of the served model of the same name, for the
            ranking log only.
        absent: The value of a feature that a document of ``/rank`` leaves out, by the feature's
            name; None is a missing value. Other features may not be left out.
        token_file: Digests of the bearer tokens that are accepted; without it, any request is.
        state_folder: Where the processes of a service keep what they share.
        ranking_log: The folder of the ranking log, or None for none.
        log_sample: The share of rankings that are logged.
        log_megabytes: The size at which a file of the ranking log ends.
        log_seconds: The age at which it ends.
        log_days: The age at which files of the ranking log are removed, or None to keep them.
        log_gigabytes: The size of the ranking log above which its oldest files are removed, or
            None to keep them.
        most_bytes: The largest body of a request.
        most_documents: The largest number of documents of a request.
        most_seconds: The longest time that a request may take to arrive, and to be scored.
        access_log: Whether every request is logged, rather than only those that are refused.
        fixed_models: Whether requests cannot load and unload models, because other machines serve
            the same ones.
        search: How ``/search`` asks an engine, or None for no such route.
        interleave: The two models of which some searches show a draft.
    """

    models: tuple[ModelSpec, ...]
    shadows: tuple[ModelSpec, ...] = ()
    absent: dict[str, float | None] = {}
    token_file: str | None = None
    state_folder: str | None = None
    ranking_log: str | None = None
    log_sample: float = 1.0
    log_megabytes: float = 64.0
    log_seconds: float = 3600.0
    log_days: float | None = None
    log_gigabytes: float | None = None
    most_bytes: int = 8 << 20
    most_documents: int = 10_000
    most_seconds: float = 10.0
    access_log: bool = False
    fixed_models: bool = False
    search: SearchSettings | None = None
    interleave: InterleaveSettings | None = None


def parse_model(text: str) -> ModelSpec:
    """Parse ``FILE``, ``NAME=FILE`` or ``NAME@VERSION=FILE``.

    The name is the file's without its extension by default, and the version is 1.

    Example:
        >>> parse_model("web@2=models/new.podium")
        ModelSpec(name='web', version=2, path='models/new.podium')
        >>> parse_model("models/web.podium").name
        'web'
    """
    label, equals, path = text.partition("=")
    if not equals:
        label, path = Path(text).stem, text
        name, version = label, "1"
    else:
        name, _, version = label.partition("@")
        version = version or "1"
    if not path:
        raise ArgumentError(f"{text!r} names no file", hint="Give FILE, or NAME=FILE.")
    if not _NAME.fullmatch(name):
        raise ArgumentError(
            f"{name!r} cannot be the name of a model",
            hint="Give NAME=FILE with letters, digits, dots, hyphens and underscores in NAME.",
        )
    if not _VERSION.fullmatch(version):
        raise ArgumentError(
            f"{version!r} is not a version", hint="Give a positive integer: NAME@2=FILE."
        )
    return ModelSpec(name, int(version), path)
