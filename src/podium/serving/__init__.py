"""The reranking service: saved rankers behind HTTP."""

from podium.errors import MissingPackageError

try:
    import fastapi as _fastapi  # noqa: F401
    import msgspec as _msgspec  # noqa: F401
except ImportError as error:
    raise MissingPackageError(error.name or "fastapi", extra="serving") from error

from podium.serving.app import create_app
from podium.serving.settings import ServingSettings

__all__ = ["ServingSettings", "create_app"]
