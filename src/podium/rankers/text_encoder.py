"""A cross-encoder: a transformer that reads a query and a document together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from podium.errors import DataError
from podium.kernels import Doubles
from podium.rankers.text_pairs import Pair

_CHARACTERS_PER_TOKEN = 32
"""Texts are cut to this many characters per token before a tokenizer sees them, so that a document
of megabytes costs no more than a long one."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Let transformers print no reports of weights and no progress of loading them."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging  # some of its functions have no types

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.ERROR)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


class CrossEncoder:
    """A checkpoint with its tokenizer.

    Attributes:
        module: The transformer with one output.
        tokenizer: Its tokenizer.
        max_length: The maximum number of tokens of a query and a document together.
    """

    def __init__(self, module: Any, tokenizer: Any, max_length: int) -> None:
        self.module, self.tokenizer = module, tokenizer
        longest = getattr(module.config, "max_position_embeddings", None) or max_length
        self.max_length = min(max_length, longest)

    @classmethod
    def load(cls, model: str | os.PathLike[str], max_length: int, *, seed: int) -> CrossEncoder:
        """Load a checkpoint; one without a head for one score gets a new one.

        Only weights in safetensors are read, and no code of the checkpoint is run.
        """
        import transformers

        torch.manual_seed(seed)  # a new head is drawn
        try:
            with _quiet():
                return cls._load(transformers, model, max_length)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
            raise DataError(
                f"{os.fspath(model)} is not a checkpoint that can be loaded ({reason})",
                hint="Give a folder or a name of a Hugging Face checkpoint with safetensors.",
            ) from error

    @classmethod
    def _load(
        cls, transformers: Any, model: str | os.PathLike[str], max_length: int
    ) -> CrossEncoder:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            os.fspath(model), trust_remote_code=False
        )
        module = transformers.AutoModelForSequenceClassification.from_pretrained(
            os.fspath(model), num_labels=1, ignore_mismatched_sizes=True,
            use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
        )  # fmt: skip
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        module.config.pad_token_id = tokenizer.pad_token_id
        return cls(module, tokenizer, max_length)

    def tokens(self, pairs: Sequence[Pair]) -> list[dict[str, list[int]]]:
        """Return the tokens of each pair, without padding."""
        most = _CHARACTERS_PER_TOKEN * self.max_length
        encoded = self.tokenizer(
            [query[:most] for query, _ in pairs],
            [document[:most] for _, document in pairs],
            truncation="longest_first",
            max_length=self.max_length,
        )
        return [{name: encoded[name][row] for name in encoded} for row in range(len(pairs))]

    def mini_batches(
        self, pairs: Sequence[Pair], size: int
    ) -> tuple[list[dict[str, torch.Tensor]], list[np.ndarray[Any, Any]]]:
        """Return mini-batches of pairs of similar length, and which pairs each has."""
        tokens = self.tokens(pairs)
        # The longest first: the others then fit in the memory that it leaves behind.
        by_length = np.argsort([-len(each["input_ids"]) for each in tokens], kind="stable")
        rows = [by_length[first : first + size] for first in range(0, len(tokens), size)]
        device = next(self.module.parameters()).device
        batches = [
            self.tokenizer.pad([tokens[row] for row in chosen], return_tensors="pt").to(device)
            for chosen in rows
        ]
        return batches, rows

    def score(self, batch: Any) -> torch.Tensor:
        """Score a mini-batch."""
        scores: torch.Tensor = self.module(**batch).logits.reshape(-1)
        return scores

    def predict(self, pairs: Sequence[Pair], size: int) -> Doubles:
        """Score pairs, without dropout; memory does not grow with their number."""
        scores = np.empty(len(pairs))
        training = self.module.training
        self.module.eval()
        with torch.inference_mode():
            for first in range(0, len(pairs), 64 * size):
                part = pairs[first : first + 64 * size]
                batches, rows = self.mini_batches(part, size)
                for batch, chosen in zip(batches, rows, strict=True):
                    scores[first + chosen] = self.score(batch).double().cpu().numpy()
        self.module.train(training)
        return scores
