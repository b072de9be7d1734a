"""The ordered top k with the fewest judgments, and everything about the people who judge.

How far people agree is measured in `podium.judging.agreement`; the selection algorithms are in
`podium.judging.algorithms`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
