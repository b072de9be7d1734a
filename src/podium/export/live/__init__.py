"""Search engines that run: put an export there, and score rows."""

from __future__ import annotations

from typing import Protocol

from podium.export.folder import ExportFolder
from podium.kernels import Doubles


class LiveEngine(Protocol):
    """A running engine of one target, reached by its URL."""

    def put(self, export: ExportFolder) -> None:
        """Upload the features and the model of an export, replacing those of the same name."""

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Return the engine's score of each row, such as those of the golden rows.

        Args:
            export: The export that was put there.
            values: One row per document, one column per feature of the export; a value that is
                NaN is absent in the engine, too.
        """
