"""Search engines that run: put an export there, score rows, and switch what searches refer to.

A model is put under the name of its version, ``podium-NAME-HASH``, and never changed. Searches
refer to NAME; one request switches the version that it refers to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from podium.export.folder import ExportFolder
from podium.kernels import Doubles


@dataclass(frozen=True)
class Reference:
    """The version that a name refers to in searches.

    Attributes:
        live: The version that ranks, or None if there is none yet.
        previous: The version before it.
        state: All that the engine has under the name, which differs after every switch.
    """

    live: str | None = None
    previous: str | None = None
    state: Any = None


@dataclass(frozen=True)
class StoredModels:
    """What Podium has put into an engine.

    Attributes:
        versions: The feature set or feature store of each version, if there are such sets.
        feature_sets: The models that use each feature set or feature store, also those that Podium
            has not put there.
        leftovers: What remains of checks that were killed, and what those that run now use.
    """

    versions: Mapping[str, str | None]
    feature_sets: Mapping[str, tuple[str, ...]]
    leftovers: tuple[str, ...] = ()


class LiveEngine(Protocol):
    """A running engine of one target, reached by its URL."""

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Return the engine's score of each row, such as those of the golden rows.

        Args:
            export: The export that was put there.
            values: One row per document, one column per feature of the export; a value that is
                NaN is absent in the engine, too.
        """


class DeploymentEngine(LiveEngine, Protocol):
    """A running engine that keeps versions of models."""

    title: str
    """Its name in messages."""

    def put(self, export: ExportFolder) -> str:
        """Upload the features and the model under the name of its version, which is returned.

        What is there already is kept. Nothing refers to the version yet.
        """

    def stored(self) -> StoredModels:
        """Return what Podium has put there."""

    def reference(self, name: str) -> Reference:
        """Return the version that a name refers to in searches."""

    def refer(self, name: str, seen: Reference, version: str) -> Reference:
        """Let a name refer to another version from now on, and return what it refers to then.

        Args:
            name: The name.
            seen: What it refers to.
            version: A version that is there.
        """

    def delete(self, name: str) -> None:
        """Delete a version, a feature set or a leftover of Podium."""

    def usage(self, name: str) -> str:
        """Return how searches refer to a name, in words."""
