"""Rankers: any loss with a linear, tree or neural scorer, as scikit-learn estimators."""

import lazy_loader

from podium.errors import MissingPackageError

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise MissingPackageError("scikit-learn", extra="rankers") from error

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
