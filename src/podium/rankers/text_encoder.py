"""What a text ranker trains: a transformer, its tokenizer, and how it scores pairs of texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from podium.kernels import Doubles
from podium.rankers.text_pairs import Pair

Tokens = dict[str, list[int]]
"""What a tokenizer returns for one text."""

_BATCHES_AT_ONCE = 64


class TextEncoder(ABC):
    """A checkpoint with its tokenizer.

    Attributes:
        module: The transformer and what is trained with it.
        tokenizer: Its tokenizer.
        max_length: The maximum number of tokens that it reads at once.
    """

    module: Any
    tokenizer: Any
    max_length: int

    @abstractmethod
    def mini_batches(
        self, pairs: Sequence[Pair], size: int
    ) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
        """Return mini-batches of pairs of similar length, and which pairs each has."""

    @abstractmethod
    def score(self, batch: Any) -> torch.Tensor:
        """Score a mini-batch."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the weights and the tokenizer in the layout of sentence-transformers."""

    def predict(self, pairs: Sequence[Pair], size: int) -> Doubles:
        """Score pairs, without dropout; memory does not grow with their number."""
        scores = np.empty(len(pairs))
        training = self.module.training
        self.module.eval()
        with torch.inference_mode():
            for first in range(0, len(pairs), _BATCHES_AT_ONCE * size):
                part = pairs[first : first + _BATCHES_AT_ONCE * size]
                batches, rows = self.mini_batches(part, size)
                for batch, chosen in zip(batches, rows, strict=True):
                    scores[first + chosen] = self.score(batch).double().cpu().numpy()
        self.module.train(training)
        return scores

    def _pad(self, tokens: Sequence[Tokens]) -> Any:
        device = next(self.module.parameters()).device
        return self.tokenizer.pad(list(tokens), return_tensors="pt").to(device)


def by_length(tokens: Sequence[Tokens], size: int) -> list[np.ndarray[Any, Any]]:
    """Return which rows each mini-batch has: those of similar length, so that few are padded.

    The longest come first: the others then fit in the memory that they leave behind.
    """
    order = np.argsort([-len(each["input_ids"]) for each in tokens], kind="stable")
    return [order[first : first + size] for first in range(0, len(tokens), size)]


def rows_of(encoded: Any, count: int) -> list[Tokens]:
    """Return what a tokenizer returned for several texts as one dictionary per text."""
    return [{name: encoded[name][row] for name in encoded} for row in range(count)]
