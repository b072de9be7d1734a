"""Rank aggregation: several rankings of the same documents combined into one.

Votes are a matrix: a row for each document, a column for each ranker, larger is better, NaN for
documents a ranker left out. An aggregation returns one score per row, so that its result can be
evaluated, compared and aggregated like any ranking.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
