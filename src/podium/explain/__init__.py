"""What a ranker does: changes that swap documents, what features are worth, cards, reports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
