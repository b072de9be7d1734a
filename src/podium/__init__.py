"""Podium: from pairwise judgments to a ranker in production.

The names of ``__init__.pyi`` are imported on first use, so that ``import podium`` loads nothing
else.
"""

from pathlib import Path

import lazy_loader

__version__ = "0.2.0"

if Path(__file__).with_name("vocab.py").exists():
    raise ImportError(
        "the package podium-nlp is installed in the same folder as podium-rank, and the two "
        "overwrite each other's files: pip uninstall podium-nlp podium-rank, then install "
        "podium-rank again"
    )

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
