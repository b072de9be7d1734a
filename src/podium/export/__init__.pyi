from .deployments import deploy_export, roll_back
from .live.connect import connect_engine
from .verifying import verify_export
from .writing import export_ranker

__all__ = [
    "connect_engine",
    "deploy_export",
    "export_ranker",
    "roll_back",
    "verify_export",
]
