"""Rankers in other engines' formats, and the check that they score the same there."""

import lazy_loader

from podium.errors import MissingPackageError

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    # Not podium-rank[rankers], which would be the first of two installations.
    raise MissingPackageError("scikit-learn", extra="export") from error

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
