"""Loading Hugging Face checkpoints quietly, with Podium's errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from podium.errors import DataError

LAYOUT = "modules.json"
"""The file by which sentence-transformers know a bi-encoder."""

_CHARACTERS_PER_TOKEN = 32
"""Texts are cut to this many characters per token before a tokenizer sees them, so that a document
of megabytes costs no more than a long one."""


@contextmanager
def loading(model: str | os.PathLike[str]) -> Iterator[None]:
    """Let transformers print nothing while a checkpoint is loaded; a DataError if it cannot be."""
    from safetensors import SafetensorError

    try:
        with quiet():
            yield
    except DataError:  # a ValueError too, which says what to do already
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
        raise DataError(
            f"{os.fspath(model)} is not a checkpoint that can be loaded ({reason})",
            hint="Give a folder or a name of a Hugging Face checkpoint with safetensors.",
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Let transformers print no reports of weights and no progress."""
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


def load_tokenizer(model: str | os.PathLike[str]) -> Any:
    """Load a tokenizer, which has a token for padding."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(
        os.fspath(model), trust_remote_code=False
    )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def longest_input(module: Any, max_length: int) -> int:
    """Return the number of tokens that a transformer takes, at most ``max_length``."""
    return min(max_length, getattr(module.config, "max_position_embeddings", None) or max_length)


def cut(text: str, max_length: int) -> str:
    """Return the part of a text that can be among its first ``max_length`` tokens."""
    return text[: _CHARACTERS_PER_TOKEN * max_length]
