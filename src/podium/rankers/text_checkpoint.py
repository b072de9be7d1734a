"""Loading Hugging Face checkpoints quietly, with Podium's errors."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from podium.errors import ArgumentError, DataError

LAYOUT = "modules.json"
"""The file by which sentence-transformers know a bi-encoder."""

_CHARACTERS_PER_TOKEN = 32
"""Texts are cut to this many characters per token before a tokenizer sees them, so that a document
of megabytes costs no more than a long one."""


@contextmanager
def loading(model: str | os.PathLike[str]) -> Iterator[None]:
    """Let transformers print nothing while a checkpoint is loaded; a DataError if it cannot be."""
    try:
        with quiet():
            yield
    except DataError:  # it says what to do already
        raise
    except Exception as error:  # a damaged file may make transformers raise anything
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


def layout_file(model: str | os.PathLike[str], name: str) -> Path | None:
    """Return the path of a file of a checkpoint, fetched if that is a name; None if it has none."""
    if Path(model).is_dir():
        path = Path(model) / name
        return path if path.is_file() else None
    from transformers.utils.hub import cached_file

    cached = cached_file(os.fspath(model), name, _raise_exceptions_for_missing_entries=False)
    return None if cached is None else Path(cached)


def require_weights(
    model: str | os.PathLike[str], report: dict[str, Any], *, new: Collection[str] = ()
) -> None:
    """Raise a DataError if a checkpoint lacks weights: transformers draw them at random.

    Args:
        model: The checkpoint.
        report: What ``from_pretrained`` returned with ``output_loading_info``.
        new: Beginnings of the names of weights that may be drawn.
    """
    other_shapes = (key if isinstance(key, str) else key[0] for key in report["mismatched_keys"])
    lacking = sorted({*report["missing_keys"], *other_shapes})
    lacking = [name for name in lacking if not name.startswith(tuple(new))]
    if lacking:
        raise DataError(
            f"{os.fspath(model)} lacks {len(lacking)} weights of its model, such as {lacking[0]}",
            hint="Give a checkpoint whose weights are those that its config.json describes.",
        )


def move_to_device(module: Any, device: str | None) -> None:
    """Move a module to a device; by default to the first GPU if there is one."""
    try:
        module.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except (RuntimeError, AssertionError) as error:  # the latter without CUDA
        raise ArgumentError(
            f"device {device!r} cannot be used ({str(error).splitlines()[0][:200]})",
            hint="Give 'cpu', 'cuda' or another device of this machine.",
        ) from error


def longest_input(module: Any, max_length: int) -> int:
    """Return the number of tokens that a transformer takes, at most ``max_length``."""
    most = getattr(module.config, "max_position_embeddings", None) or max_length
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, torch.nn.Embedding):
            # RoBERTa and its kin count positions from the one after that of padding.
            reserved = 0 if part.padding_idx is None else part.padding_idx + 1
            most = min(most, part.num_embeddings - reserved)
    return min(max_length, most)


def cut(text: str, max_length: int) -> str:
    """Return the part of a text that can be among its first ``max_length`` tokens."""
    return text[: _CHARACTERS_PER_TOKEN * max_length]
