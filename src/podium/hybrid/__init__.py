"""Hybrid search: several result lists become one, with weights chosen on judgments.

``tuning``, ``objectives`` and ``ranker`` choose the weights.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
