"""The base of pairwise losses: which pairs of documents count."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from podium.errors import ArgumentError
from podium.losses.base import normalize_k
from podium.losses.compiled import CompiledLoss


@dataclass(frozen=True)
class PairLoss(CompiledLoss):
    """A sum over pairs of a top-k document and a document with a smaller label.

    Documents tied with the k-th count as top-k documents; equal labels make no pair. ``Focused``
    asks for the pairs *across* only: of the top k against the rest, none inside the top k.

    Attributes:
        k: How many documents are the top, or None for all.
        pairs: ``"all"`` pairs of a top-k document, or only those ``"across"`` the edge.
    """

    row_weighting = "gradient"

    k: int | None = None
    pairs: Literal["all", "across"] = "all"

    def __post_init__(self) -> None:
        normalize_k(self)
        if self.pairs not in ("all", "across"):
            raise ArgumentError(f"pairs is {self.pairs!r}. Give 'all' or 'across'.")

    @abstractmethod
    def arguments(self, largest: int) -> tuple[Any, ...]:
        """The further arguments of ``query``."""
