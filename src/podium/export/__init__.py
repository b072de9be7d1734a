"""Rankers in other engines' formats, and the check that they score the same there."""

from podium.errors import MissingPackageError

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    # Not podium-rank[rankers], which would be the first of two installations.
    raise MissingPackageError("scikit-learn", extra="export") from error

from podium.export.deployments import (
    delete_stored,
    deploy_export,
    roll_back,
    switch_version,
)
from podium.export.folder import ExportFolder, GoldenRows
from podium.export.live import DeploymentEngine, LiveEngine
from podium.export.live.connect import connect_engine
from podium.export.verifying import Verification, verify_export
from podium.export.writing import ExportSettings, export_ranker

__all__ = [
    "DeploymentEngine",
    "ExportFolder",
    "ExportSettings",
    "GoldenRows",
    "LiveEngine",
    "Verification",
    "connect_engine",
    "delete_stored",
    "deploy_export",
    "export_ranker",
    "roll_back",
    "switch_version",
    "verify_export",
]
