"""What was ranked in production: data sets from ranking logs, and drift against training."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
