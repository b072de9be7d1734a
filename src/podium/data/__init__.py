"""Query-grouped data and its file formats, used by every other package."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
