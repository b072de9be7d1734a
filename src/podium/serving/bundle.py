"""A service in one message: its settings and the bytes of every file that they name.

Machines of a cluster need none of the files: each replica unpacks what was checked once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podium.serving.releases import ReleasedModel, Releases
from podium.serving.repository import Repository
from podium.serving.settings import ServingSettings
from podium.serving.tokens import Tokens


@dataclass(frozen=True)
class ServiceBundle:
    """What a replica needs.

    Attributes:
        settings: The settings, as JSON.
        models: The models of the release.
        contents: Their bytes, by digest.
        tokens: The content of the token file, or None.
    """

    settings: bytes
    models: tuple[ReleasedModel, ...]
    contents: Mapping[str, bytes]
    tokens: bytes | None


def pack_service(settings: ServingSettings) -> ServiceBundle:
    """Read and check all files; a DataError if a model cannot be served."""
    tokens = None
    if settings.token_file is not None:
        Tokens.read(settings.token_file)
        tokens = Path(settings.token_file).read_bytes()
    with tempfile.TemporaryDirectory(prefix="podium-serving-") as folder:
        release = Repository(settings, Path(folder)).reload()
        releases = Releases(Path(folder))
        contents = {model.digest: releases.content(model.digest) for model in release.models}
    return ServiceBundle(msgspec.json.encode(settings), release.models, contents, tokens)


def unpack_service(bundle: ServiceBundle, folder: Path) -> ServingSettings:
    """Write a bundle's files into a folder; return settings that name them."""
    Releases(folder).publish(bundle.models, bundle.contents)
    settings = msgspec.json.decode(bundle.settings, type=ServingSettings)
    changes: dict[str, object] = {"state_folder": str(folder), "fixed_models": True}
    if bundle.tokens is not None:
        path = folder / "tokens"
        path.write_bytes(bundle.tokens)
        changes["token_file"] = str(path)
    return msgspec.structs.replace(settings, **changes)
