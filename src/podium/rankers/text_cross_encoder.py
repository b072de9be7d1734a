"""A cross-encoder: a transformer that reads a query and a document together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from podium.rankers.text_checkpoint import (
    LAYOUT,
    cut,
    load_tokenizer,
    loading,
    longest_input,
    require_weights,
)
from podium.rankers.text_encoder import TextEncoder, Tokens, by_length, rows_of
from podium.rankers.text_pairs import Pair


class CrossEncoder(TextEncoder):
    """A checkpoint with one output, and its tokenizer.

    Attributes:
        module: The transformer with one output.
        tokenizer: Its tokenizer.
        max_length: The maximum number of tokens of a query and a document together.
    """

    def __init__(self, module: Any, tokenizer: Any, max_length: int) -> None:
        self.module, self.tokenizer = module, tokenizer
        self.max_length = longest_input(module, max_length)

    @classmethod
    def load(
        cls, model: str | os.PathLike[str], max_length: int, *, seed: int, new_head: bool = True
    ) -> CrossEncoder:
        """Load a checkpoint; one without a head for one score gets a new one.

        Only weights in safetensors are read, and no code of the checkpoint is run.

        Args:
            model: The folder of a checkpoint, or its name.
            max_length: The maximum number of tokens.
            seed: That of a new head.
            new_head: Whether there may be a new one.
        """
        import transformers

        torch.manual_seed(seed)  # a new head is drawn
        with loading(model):
            tokenizer = load_tokenizer(model)
            module, report = transformers.AutoModelForSequenceClassification.from_pretrained(
                os.fspath(model), num_labels=1, ignore_mismatched_sizes=True,
                use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
                output_loading_info=True,
            )  # fmt: skip
            require_weights(model, report, new=_head(module) if new_head else ())
        module.config.pad_token_id = tokenizer.pad_token_id
        return cls(module, tokenizer, max_length)

    def tokens(self, pairs: Sequence[Pair]) -> list[Tokens]:
        """Return the tokens of each pair, without padding."""
        encoded = self.tokenizer(
            [cut(query, self.max_length) for query, _ in pairs],
            [cut(document, self.max_length) for _, document in pairs],
            truncation="longest_first",
            max_length=self.max_length,
        )
        return rows_of(encoded, len(pairs))

    def mini_batches(
        self, pairs: Sequence[Pair], size: int
    ) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
        """Return mini-batches of pairs of similar length, and which pairs each has."""
        tokens = self.tokens(pairs)
        rows = by_length(tokens, size)
        return [self._pad([tokens[row] for row in chosen]) for chosen in rows], rows

    def score(self, batch: Any) -> torch.Tensor:
        """Score a mini-batch."""
        scores: torch.Tensor = self.module(**batch).logits.reshape(-1)
        return scores

    def save(self, folder: Path) -> None:
        """Write the layout that ``CrossEncoder`` of sentence-transformers loads."""
        # It would apply a sigmoid to a single output otherwise.
        identity = {"activation_fn": "torch.nn.modules.linear.Identity"}
        self.module.config.sentence_transformers = identity
        self.module.save_pretrained(folder)
        # Where it cuts texts unless it is told otherwise: as this ranker does.
        self.tokenizer.model_max_length = self.max_length
        self.tokenizer.save_pretrained(folder)
        # That of a bi-encoder saved here before would make it draw a new head.
        (folder / LAYOUT).unlink(missing_ok=True)


def _head(module: Any) -> list[str]:
    """Return the beginnings of the names of all weights that are not the encoder's."""
    encoder = f"{module.base_model_prefix}."
    outside = {name for name in module.state_dict() if not name.startswith(encoder)}
    return [*outside, f"{encoder}pooler."]
