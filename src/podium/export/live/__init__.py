"""Search engines that run: put an export there, and score its golden rows."""

from __future__ import annotations

from typing import Protocol

from podium.export.folder import ExportFolder
from podium.kernels import Doubles


class LiveEngine(Protocol):
    """A running engine of one target, reached by its URL."""

    def put(self, export: ExportFolder) -> None:
        """Upload the features and the model of an export, replacing those of the same name."""

    def score(self, export: ExportFolder) -> Doubles:
        """Return the engine's score of each golden row, in their order.

        An absent value (NaN) of a row must be absent in the engine, too.
        """
