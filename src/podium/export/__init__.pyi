from .deployments import delete_stored, deploy_export, roll_back, switch_version
from .live.connect import connect_engine
from .verifying import verify_export
from .writing import export_ranker

__all__ = [
    "connect_engine",
    "delete_stored",
    "deploy_export",
    "export_ranker",
    "roll_back",
    "switch_version",
    "verify_export",
]
