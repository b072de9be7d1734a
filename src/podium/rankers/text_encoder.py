"""What a text ranker trains: a checkpoint, which sentence-transformers loads, runs and saves."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.util import batch_to_device, load_file_path

from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats, Ints
from podium.rankers.text_pairs import Pair

TextEncoder: TypeAlias = CrossEncoder | SentenceTransformer

_CHARACTERS_PER_TOKEN = 32
"""Texts are cut to this many characters per token before a tokenizer sees them, so that a document
of megabytes costs no more than a long one."""

_PAIRS_AT_ONCE = 4096
"""Pairs that a bi-encoder scores together."""

_WEIGHTS = {"use_safetensors": True, "dtype": torch.float32, "ignore_mismatched_sizes": True}
_NO_CODE = {"trust_remote_code": False}
_MODULES = ("Transformer", "Pooling", "Normalize")
_SETTINGS = "config_sentence_transformers.json"
_SCALE = "podium_scale"
_FIRST_SCALE = 20.0
"""What cosines are multiplied by before training, as in losses of sentence-transformers."""


def load_cross_encoder(
    model: str | os.PathLike[str],
    max_length: int,
    *,
    device: str | None = None,
    seed: int = 0,
    new_head: bool = True,
) -> CrossEncoder:
    """Load a checkpoint with one output; one without a head for one score gets a new one.

    Only weights in safetensors are read, and no code of the checkpoint is run.

    Args:
        model: The folder of a checkpoint, or its name.
        max_length: The maximum number of tokens of a query and a document together.
        device: Such as ``"cuda"``.
        seed: That of a new head.
        new_head: Whether there may be a new one.
    """
    _require_device(device)
    torch.manual_seed(seed)  # a new head is drawn
    with _loading(model):
        transformer = Transformer(
            os.fspath(model), transformer_task="sequence-classification",
            model_kwargs=_WEIGHTS | _NO_CODE, processor_kwargs=dict(_NO_CODE),
            config_kwargs={"num_labels": 1, **_NO_CODE},
            # Texts as they are, though a tokenizer may have a template of chats.
            modality_config={"text": {"method": "forward", "method_output_name": "logits"}},
            module_output_name="scores",
        )  # fmt: skip
        encoder = CrossEncoder(
            modules=[transformer], device=device, activation_fn=torch.nn.Identity()
        )
        prefix = f"{transformer.model.base_model_prefix}."
        head = [name for name in transformer.model.state_dict() if not name.startswith(prefix)]
        _require_weights(encoder, model, new=(*head, f"{prefix}pooler.") if new_head else ())
        _limit_length(encoder, max_length)
    return encoder


def load_bi_encoder(
    model: str | os.PathLike[str], max_length: int, *, device: str | None = None
) -> SentenceTransformer:
    """Load a checkpoint of sentence-transformers, or another, whose tokens are pooled by means.

    Vectors that are compared by the cosine are normalized, and ``log_scale`` is what cosines are
    multiplied by. Prompts of the checkpoint are not used. Only weights in safetensors are read, and
    no code of the checkpoint is run.

    Args:
        model: The folder of a checkpoint, or its name.
        max_length: The maximum number of tokens of a text.
        device: Such as ``"cuda"``.
    """
    _require_device(device)
    name = os.fspath(model)
    with _loading(model), torch.random.fork_rng():
        # Nothing that is drawn is used, but it is saved: BERT's pooler, if it is not there.
        torch.manual_seed(0)
        parts, settings = _read_json(name, "modules.json") or [], _read_json(name, _SETTINGS) or {}
        for part in parts:
            kind = str(part["type"]).rpartition(".")[2]
            if kind not in _MODULES:
                raise DataError(
                    f"has a module {kind}, which is not supported",
                    path=name,
                    hint=f"Give a checkpoint of {', '.join(_MODULES)} only.",
                )
        similarity = str(settings.get("similarity_fn_name") or "cosine")
        if similarity not in ("cosine", "dot"):
            raise DataError(
                f"compares by {similarity}", path=name, hint="Supported are cosine and dot."
            )
        scale = float(settings.get(_SCALE, _FIRST_SCALE))
        if not 0 < scale < math.inf:
            raise DataError(f"has the scale {scale}", path=name, hint="It must be positive.")
        encoder = SentenceTransformer(
            name, device=device, model_kwargs=_WEIGHTS | _NO_CODE,
            local_files_only=Path(name).is_dir(), **_NO_CODE,
        )  # fmt: skip
        encoder.similarity_fn_name = similarity
        encoder.prompts, encoder.default_prompt_name, encoder.truncate_dim = {}, None, None
        if similarity == "cosine" and not any(isinstance(part, Normalize) for part in encoder):
            encoder.append(Normalize())
        encoder.log_scale = torch.nn.Parameter(torch.tensor(math.log(scale), device=encoder.device))
        folder = str(parts[0].get("path") or "") if parts else ""
        _require_weights(encoder, model, new=("pooler.",), subfolder=folder)
        _limit_length(encoder, max_length)
    return encoder


def score_scale(encoder: TextEncoder) -> float:
    """Return what the products of a bi-encoder's vectors are multiplied by."""
    cosine = isinstance(encoder, SentenceTransformer) and encoder.similarity_fn_name == "cosine"
    return float(encoder.log_scale.detach().exp()) if cosine else 1.0


def mini_batches(
    encoder: TextEncoder, pairs: Sequence[Pair], size: int
) -> tuple[list[Any], list[Ints]]:
    """Return mini-batches of pairs of similar length as tokens, and which pairs each has.

    The longest come first: the others then fit in the memory that they leave behind.
    """
    pairs = [(cut(encoder, query), cut(encoder, document)) for query, document in pairs]
    order = np.argsort([-len(query) - len(document) for query, document in pairs], kind="stable")
    rows = [order[first : first + size] for first in range(0, len(pairs), size)]
    return [_tokens(encoder, [pairs[row] for row in chosen]) for chosen in rows], rows


def _tokens(encoder: TextEncoder, pairs: list[Pair]) -> Any:
    if isinstance(encoder, CrossEncoder):
        return encoder.preprocess(pairs)
    queries = list(dict.fromkeys(query for query, _ in pairs))
    documents = [document for _, document in pairs]
    query_of = torch.tensor([queries.index(query) for query, _ in pairs])
    return encoder.preprocess(queries), encoder.preprocess(documents), query_of


def score_batch(encoder: TextEncoder, batch: Any) -> torch.Tensor:
    """Score a mini-batch, with a graph for its gradient."""
    scores: torch.Tensor
    if isinstance(encoder, CrossEncoder):
        scores = _run(encoder, batch)["scores"].reshape(-1)
        return scores
    queries, documents = (_run(encoder, tokens)["sentence_embedding"] for tokens in batch[:2])
    scores = (queries[batch[2].to(queries.device)] * documents).sum(1)
    return scores * encoder.log_scale.exp() if encoder.similarity_fn_name == "cosine" else scores


def _run(encoder: TextEncoder, tokens: Any) -> Any:
    return encoder(batch_to_device(dict(tokens), encoder.device))  # both write into what they get


def score_pairs(encoder: TextEncoder, pairs: Sequence[Pair], size: int) -> Doubles:
    """Score pairs, and leave dropout off; memory does not grow with their number."""
    if isinstance(encoder, CrossEncoder):
        short = [(cut(encoder, query), cut(encoder, document)) for query, document in pairs]
        scores = encoder.predict(short, batch_size=size, show_progress_bar=False)
        return np.asarray(scores, np.float64)
    scores = np.empty(len(pairs))
    for first in range(0, len(pairs), _PAIRS_AT_ONCE):
        part = pairs[first : first + _PAIRS_AT_ONCE]
        texts = list(dict.fromkeys(text for pair in part for text in pair))
        vectors = dict(zip(texts, embed(encoder, texts, size), strict=True))
        scores[first : first + len(part)] = pair_products(part, vectors)
    return scores * score_scale(encoder)


def pair_products(pairs: Sequence[Pair], vectors: Mapping[str, Floats]) -> Doubles:
    """Return the product of the vectors of each pair's texts."""
    return np.array([vectors[query] @ vectors[document] for query, document in pairs], np.float64)


def embed(encoder: SentenceTransformer, texts: Sequence[str], size: int) -> Floats:
    """Return one vector per text, and leave dropout off."""
    if not texts:
        return np.empty((0, encoder.get_embedding_dimension() or 0), np.float32)
    short = [cut(encoder, text) for text in texts]
    vectors = encoder.encode(short, batch_size=size, show_progress_bar=False)
    return np.asarray(vectors, np.float32)


def save_encoder(encoder: TextEncoder, folder: Path) -> None:
    """Write the layout of sentence-transformers, which has the transformer's own files."""
    with _quiet():
        encoder.save(str(folder), create_model_card=False)
    if isinstance(encoder, SentenceTransformer):
        path = folder / _SETTINGS
        settings = {**json.loads(path.read_text()), _SCALE: float(encoder.log_scale.detach().exp())}
        path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def cut(encoder: TextEncoder, text: str) -> str:
    """Return the part of a text that can be among the first tokens that an encoder reads."""
    return text[: _CHARACTERS_PER_TOKEN * encoder.max_seq_length]


@contextmanager
def _loading(model: str | os.PathLike[str]) -> Iterator[None]:
    """Let nothing be printed while a checkpoint is loaded; a DataError if it cannot be."""
    try:
        with _quiet():
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
def _quiet() -> Iterator[None]:
    """Let both libraries print no reports of weights and no progress."""
    from transformers.utils import logging as transformers_logging

    ours = logging.getLogger("sentence_transformers")
    theirs: Any = transformers_logging  # some of its functions have no types
    level, verbosity, bars = ours.level, theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    ours.setLevel(logging.ERROR)
    theirs.set_verbosity(logging.ERROR)
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        ours.setLevel(level)
        theirs.set_verbosity(verbosity)
        if bars:
            theirs.enable_progress_bar()


def _read_json(model: str, name: str) -> Any:
    path = load_file_path(model, name, local_files_only=Path(model).is_dir())
    return None if path is None else json.loads(Path(path).read_text())


def _require_device(device: str | None) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter without CUDA
        raise ArgumentError(
            f"device {device!r} cannot be used ({str(error).splitlines()[0][:200]})",
            hint="Give 'cpu', 'cuda' or another device of this machine.",
        ) from error


def _require_weights(
    encoder: TextEncoder, model: str | os.PathLike[str], new: Sequence[str], subfolder: str = ""
) -> None:
    """Raise a DataError if a checkpoint lacks weights, which are then drawn at random.

    sentence-transformers does not say it, so the weights are read again: transformers does.

    Args:
        encoder: What was loaded.
        model: The checkpoint.
        new: Beginnings of the names of weights that may be drawn.
        subfolder: Where the checkpoint has its transformer.
    """
    own = encoder.transformers_model
    _, report = type(own).from_pretrained(
        os.fspath(model), config=own.config, subfolder=subfolder, output_loading_info=True,
        **_WEIGHTS,
    )  # fmt: skip
    other_shapes = (key if isinstance(key, str) else key[0] for key in report["mismatched_keys"])
    lacking = sorted({*report["missing_keys"], *other_shapes})
    lacking = [name for name in lacking if not name.startswith(tuple(new))]
    if lacking:
        raise DataError(
            f"{os.fspath(model)} lacks {len(lacking)} weights of its model, such as {lacking[0]}",
            hint="Give a checkpoint whose weights are those that its config.json describes.",
        )


def _limit_length(encoder: TextEncoder, max_length: int) -> None:
    """Set the number of tokens that is read, at most as many as there are positions."""
    tokenizer, module = encoder.tokenizer, encoder.transformers_model
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    module.config.pad_token_id = tokenizer.pad_token_id
    most = getattr(module.config, "max_position_embeddings", None) or max_length
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, torch.nn.Embedding):
            # RoBERTa and its kin count positions from the one after that of padding.
            reserved = 0 if part.padding_idx is None else part.padding_idx + 1
            most = min(most, part.num_embeddings - reserved)
    encoder.max_seq_length = min(max_length, most)
