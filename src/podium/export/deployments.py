"""Put exports into running engines, and switch between them without an outage.

A version is uploaded beside those that are there and checked there; only then a single request
lets searches refer to it. The one before stays for a rollback.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from podium.errors import ArgumentError, DataError
from podium.export.folder import ExportFolder
from podium.export.live import DeploymentEngine, Reference
from podium.export.live.versions import is_feature_set, is_leftover, model_name
from podium.export.verifying import Verification, verify_export
from podium.scorers.feature_names import shortened


@dataclass(frozen=True)
class Deployment:
    """What a deployment did.

    Attributes:
        version: The name of the uploaded model.
        before: The version that searches referred to, or None.
        live: The version that searches refer to now, or None.
        verification: How the golden rows score there.
    """

    version: str
    before: str | None
    live: str | None
    verification: Verification


def deploy_export(
    folder: str | os.PathLike[str] | ExportFolder, engine: DeploymentEngine, *, switch: bool = True
) -> Deployment:
    """Upload an export as a new version, check it in the engine, and let searches refer to it.

    Searches refer to it only if all golden rows score there as they should. Nothing that was there
    is changed before, so whatever fails, they go on as before.

    Args:
        folder: The export.
        engine: Where to put it.
        switch: Whether searches are to refer to it; if not, ``switch_version`` lets them.

    Raises:
        DataError: If the engine does not take it, or somebody else switched meanwhile.

    Example:
        >>> import tempfile
        >>> from podium.export import connect_engine, export_ranker
        >>> from podium.rankers import LinearRanker
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> export = export_ranker(ranker, "opensearch", tempfile.mkdtemp())
        >>> deploy_export(export, connect_engine("opensearch", "http://localhost:1"))
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    export = folder if isinstance(folder, ExportFolder) else ExportFolder.open(folder)
    name = export.manifest.model_name
    before = engine.reference(name)
    version = engine.put(export)
    verification = verify_export(export, engine)
    live = before.live
    if switch and verification.holds:
        _switch(engine, name, before, version)
        live = version
    return Deployment(version, before.live, live, verification)


def switch_version(version: str, engine: DeploymentEngine) -> None:
    """Let searches refer to a version that is in an engine.

    Example:
        >>> from podium.export import connect_engine
        >>> engine = connect_engine("opensearch", "http://localhost:1")
        >>> switch_version("podium-shop-1a2b3c4d5e6f", engine)
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    name = model_name(version)
    _require_there(version, engine)
    _switch(engine, name, engine.reference(name), version)


def roll_back(name: str, engine: DeploymentEngine) -> str:
    """Let searches refer to the version before, which is returned.

    Example:
        >>> from podium.export import connect_engine
        >>> engine = connect_engine("opensearch", "http://localhost:1")
        >>> roll_back("shop", engine)
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    seen = engine.reference(name)
    if seen.previous is None:
        raise DataError(
            f"there is no version of {name!r} before the one that is live",
            hint="podium deploy list URL prints those that are there.",
        )
    _require_there(seen.previous, engine)
    _switch(engine, name, seen, seen.previous)
    return seen.previous


def delete_stored(name: str, engine: DeploymentEngine) -> None:
    """Delete a version, a feature set or what is left of a check, by the name of the list.

    Raises:
        ArgumentError: If searches refer to the version, if a model uses the feature set, or if the
            name is not one that Podium gives.

    Example:
        >>> from podium.export import connect_engine
        >>> engine = connect_engine("opensearch", "http://localhost:1")
        >>> delete_stored("podium-shop-1a2b3c4d5e6f", engine)
        Traceback (most recent call last):
        podium.errors.DataError: OpenSearch cannot be reached (ConnectError). ...
    """
    is_version = not is_feature_set(name) and not is_leftover(name)
    if is_version:
        _require_not_live(name, engine)
    stored = engine.stored()
    if is_feature_set(name):
        there, users = name in stored.feature_sets, stored.feature_sets.get(name, ())
        if users:
            raise ArgumentError(f"{name} is used by {', '.join(users)}", hint="Delete that first.")
    elif is_leftover(name):
        there = name in stored.leftovers
    else:
        there = name in stored.versions
    if not there:
        raise DataError(
            f"{engine.title} has no {name}",
            hint="podium deploy list URL prints what is there.",
        )
    engine.delete(name)
    if is_version:
        _leave(name, engine.reference(model_name(name)), engine)


def _leave(version: str, now: Reference, engine: DeploymentEngine) -> None:
    """Let searches go back from a version that somebody deleted while another one switched to it.

    There is no lock: the later of a deletion and a switch notices the other.
    """
    if now.live != version or version in engine.stored().versions:
        return
    name = model_name(version)
    if now.previous is None:
        raise DataError(
            f"searches for {name!r} refer to {version}, which was deleted meanwhile",
            hint="Put it there again: podium deploy put.",
        )
    engine.refer(name, now, now.previous)
    raise DataError(
        f"{version} was deleted while somebody switched to it: searches refer to "
        f"{now.previous} again",
        hint="Agree on a version, and put it there: podium deploy put.",
    )


def _require_not_live(version: str, engine: DeploymentEngine) -> None:
    if engine.reference(model_name(version)).live == version:
        raise ArgumentError(
            f"searches refer to {version}",
            hint="Switch to another version first: podium deploy switch, or rollback.",
        )


def _require_there(version: str, engine: DeploymentEngine) -> None:
    if version not in engine.stored().versions:
        raise DataError(
            f"{engine.title} has no {shortened(repr(version))}",
            hint="podium deploy list URL prints those that are there.",
        )


def _switch(engine: DeploymentEngine, name: str, seen: Reference, version: str) -> None:
    """Let a name refer to a version, unless it refers to another than was seen."""
    now = engine.reference(name)
    if now != seen:
        raise _switched_meanwhile(name, now)
    if now.live == version:
        return
    expected = engine.refer(name, seen, version)
    now = engine.reference(name)
    if now != expected:
        raise _switched_meanwhile(name, now)
    _leave(version, now, engine)


def _switched_meanwhile(name: str, now: Reference) -> DataError:
    return DataError(
        f"somebody else switched {name!r} meanwhile: searches refer to {now.live}",
        hint="Agree on a version, and switch to it: podium deploy switch.",
    )
