"""Rankers and their evaluations in MLflow."""

import lazy_loader

from podium.errors import MissingPackageError

try:
    import mlflow as _mlflow  # noqa: F401
except ImportError as error:
    raise MissingPackageError("mlflow", extra="mlflow") from error

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
