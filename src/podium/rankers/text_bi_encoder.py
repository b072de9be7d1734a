"""A bi-encoder: a transformer that embeds queries and documents one by one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from podium.errors import DataError
from podium.kernels import Floats
from podium.rankers.text_checkpoint import (
    LAYOUT,
    cut,
    layout_file,
    load_tokenizer,
    loading,
    longest_input,
    require_weights,
)
from podium.rankers.text_encoder import TextEncoder, Tokens, by_length, rows_of
from podium.rankers.text_pairs import Pair

_FIRST_SCALE = 20.0
"""What cosines are multiplied by before training, as in losses of sentence-transformers."""

_POOLING = "1_Pooling"
_SETTINGS = "config_sentence_transformers.json"
_SCALE = "podium_scale"
_SIMILARITIES = ("cosine", "dot")


class _Batch(NamedTuple):
    """Documents, the queries that they are for, and which of these each one has."""

    queries: Any
    documents: Any
    query_of: torch.Tensor


class _Layout(NamedTuple):
    """How a checkpoint pools and compares; vectors that are compared by cosines are normalized."""

    pooling: str
    similarity: str
    normalizes: bool
    scale: float


class _Embedder(torch.nn.Module):
    """A transformer, the pooling of its tokens, and the learned scale of cosines."""

    def __init__(self, transformer: Any, layout: _Layout) -> None:
        super().__init__()
        self.transformer, self.config = transformer, transformer.config
        self.pooling, self.similarity = layout.pooling, layout.similarity
        self.normalizes = layout.normalizes
        self.log_scale = torch.nn.Parameter(torch.tensor(math.log(layout.scale)))

    def embed(self, tokens: Any) -> torch.Tensor:
        """Return one vector per text; of length 1 if they are normalized."""
        return self.pool(self.transformer(**tokens).last_hidden_state, tokens["attention_mask"])

    def pool(self, states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return one vector per text from the states of its tokens."""
        if self.pooling == "cls":
            pooled = states[:, 0]
        else:
            mask = attention_mask.unsqueeze(-1).to(states.dtype)
            pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        if self.normalizes:
            pooled = torch.nn.functional.normalize(pooled, dim=1)
        return torch.as_tensor(pooled)

    def forward(self, batch: _Batch) -> torch.Tensor:
        """Score documents."""
        queries, documents = self.embed(batch.queries), self.embed(batch.documents)
        products = (queries[batch.query_of] * documents).sum(1)
        return products * self.log_scale.exp() if self.similarity == "cosine" else products


class BiEncoder(TextEncoder):
    """A checkpoint that embeds texts, and its tokenizer.

    Attributes:
        module: The transformer with its pooling and the scale of cosines.
        tokenizer: Its tokenizer.
        max_length: The maximum number of tokens of a text.
    """

    def __init__(self, module: _Embedder, tokenizer: Any, max_length: int) -> None:
        self.module, self.tokenizer = module, tokenizer
        self.max_length = longest_input(module, max_length)

    @classmethod
    def load(cls, model: str | os.PathLike[str], max_length: int) -> BiEncoder:
        """Load a checkpoint: one of sentence-transformers with its pooling, or another with means.

        Only weights in safetensors are read, and no code of the checkpoint is run.
        """
        import transformers

        with loading(model), torch.random.fork_rng():
            # Nothing that is drawn is used, but it is saved: BERT's pooler, if it is not there.
            torch.manual_seed(0)
            tokenizer = load_tokenizer(model)
            transformer, report = transformers.AutoModel.from_pretrained(
                os.fspath(model), use_safetensors=True, trust_remote_code=False,
                dtype=torch.float32, output_loading_info=True,
            )  # fmt: skip
            require_weights(model, report, new=["pooler."])
            module = _Embedder(transformer, _read_layout(model))
        return cls(module, tokenizer, max_length)

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text, without padding."""
        encoded = self.tokenizer(
            [cut(text, self.max_length) for text in texts],
            truncation=True,
            max_length=self.max_length,
        )
        return rows_of(encoded, len(texts))

    def mini_batches(
        self, pairs: Sequence[Pair], size: int
    ) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
        """Return mini-batches of documents of similar length, and which pairs each has."""
        texts = list(dict.fromkeys(query for query, _ in pairs))
        queries = dict(zip(texts, self.tokens(texts), strict=True)) if texts else {}
        documents = self.tokens([document for _, document in pairs]) if pairs else []
        rows = by_length(documents, size)
        batches = []
        for chosen in rows:
            own = dict.fromkeys(pairs[row][0] for row in chosen)
            index = {query: number for number, query in enumerate(own)}
            batches.append(
                _Batch(
                    self._pad([queries[query] for query in own]),
                    self._pad([documents[row] for row in chosen]),
                    torch.tensor([index[pairs[row][0]] for row in chosen]),
                )
            )
        return batches, rows

    def score(self, batch: Any) -> torch.Tensor:
        """Score a mini-batch."""
        scores: torch.Tensor = self.module(batch)
        return scores

    def embed(self, texts: Sequence[str], size: int) -> Floats:
        """Return one vector per text, without dropout."""
        vectors = np.empty((len(texts), self.module.config.hidden_size), np.float32)
        training = self.module.training
        self.module.eval()
        tokens = self.tokens(texts) if texts else []
        with torch.inference_mode():
            for chosen in by_length(tokens, size):
                batch = self._pad([tokens[row] for row in chosen])
                vectors[chosen] = self.module.embed(batch).float().cpu().numpy()
        self.module.train(training)
        return vectors

    def save(self, folder: Path) -> None:
        """Write the layout that ``SentenceTransformer`` loads."""
        module = self.module
        module.transformer.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        parts = [
            "Transformer",
            "Pooling",
            *(["Normalize"] if module.normalizes else []),
        ]
        modules = [
            {
                "idx": index,
                "name": str(index),
                "path": f"{index}_{part}" if index else "",
                "type": f"sentence_transformers.models.{part}",
            }
            for index, part in enumerate(parts)
        ]
        pooling = {
            "word_embedding_dimension": module.config.hidden_size,
            "pooling_mode_cls_token": module.pooling == "cls",
            "pooling_mode_mean_tokens": module.pooling == "mean",
        }
        settings = {
            "similarity_fn_name": module.similarity,
            _SCALE: float(module.log_scale.detach().exp()),
        }
        for name, content in (
            (LAYOUT, modules),
            (f"{_POOLING}/config.json", pooling),
            (_SETTINGS, settings),
            ("sentence_bert_config.json", {"max_seq_length": self.max_length}),
        ):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(content, indent=1) + "\n")


def _read_layout(model: str | os.PathLike[str]) -> _Layout:
    path = os.fspath(model)
    parts = {str(part["type"]).rpartition(".")[2]: part for part in _read_json(model, LAYOUT) or []}
    known = ("Transformer", "Pooling", "Normalize")
    for kind in parts:
        if kind not in known:
            raise DataError(
                f"has a module {kind}, which is not supported",
                path=path,
                hint=f"Give a checkpoint of {', '.join(known)} only.",
            )
    pooling = _read_pooling(model, parts)
    if pooling not in ("mean", "cls"):
        raise DataError(f"pools by {pooling}", path=path, hint="Supported are mean and cls.")
    settings = _read_json(model, _SETTINGS) or {}
    similarity = str(settings.get("similarity_fn_name") or "cosine")
    if similarity not in _SIMILARITIES:
        raise DataError(
            f"compares by {similarity}", path=path, hint="Supported are cosine and dot."
        )
    scale = float(settings.get(_SCALE, _FIRST_SCALE))
    if not 0 < scale < math.inf:
        raise DataError(f"has the scale {scale}", path=path, hint="It must be positive.")
    return _Layout(pooling, similarity, similarity == "cosine" or "Normalize" in parts, scale)


def _read_pooling(model: str | os.PathLike[str], parts: Mapping[str, Any]) -> str:
    folder = str(parts["Pooling"].get("path") or _POOLING) if "Pooling" in parts else _POOLING
    if Path(folder).name != folder:
        raise DataError(
            f"has its pooling elsewhere ({folder})", path=os.fspath(model), hint="Do not load it."
        )
    config = _read_json(model, f"{folder}/config.json")
    if config is None:
        if parts:
            raise DataError(
                f"has no {folder}/config.json, which says how tokens are pooled",
                path=os.fspath(model), hint="Restore the file.",
            )  # fmt: skip
        return "mean"
    modes = [
        name.removeprefix("pooling_mode_").removesuffix("_token").removesuffix("_tokens")
        for name, value in config.items()
        if name.startswith("pooling_mode_") and value
    ]
    return str(config["pooling_mode"] if "pooling_mode" in config else "+".join(modes))


def _read_json(model: str | os.PathLike[str], name: str) -> Any:
    path = layout_file(model, name)
    return None if path is None else json.loads(path.read_text())
