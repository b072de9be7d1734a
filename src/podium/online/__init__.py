"""What users do with two rankings: interleaving and A/B tests with verdicts at any time."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
