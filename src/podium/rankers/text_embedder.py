"""Embeddings of texts, computed once and kept on disk, and the similarity of pairs."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from podium.errors import DataError, MissingPackageError
from podium.kernels import Doubles, Floats
from podium.rankers.parameter_checks import check_integer
from podium.rankers.text_pairs import read_pairs, valid_text

try:
    from podium.rankers.text_encoder import embed, load_bi_encoder, pair_products
except ImportError as error:
    raise MissingPackageError("sentence-transformers", extra="text") from error

_AT_ONCE = 512
"""Texts that are looked up, embedded and written together."""

_NOT_OF_THE_MODEL = ("_name_or_path", "transformers_version", "architectures", "dtype")
"""What a configuration says of where it is from, in some versions of transformers."""


class TextEmbedder:
    """A bi-encoder that embeds texts: the checkpoint of one, or a saved ``TextRanker``.

    Args:
        model: A Hugging Face checkpoint, with or without the layout of sentence-transformers.
        max_length: The maximum number of tokens of a text.
        mini_batch_size: How many texts are embedded at once.
        cache_folder: Where embeddings are kept, by a hash of the model and of the text; several
            processes may share it.
        device: Such as ``"cuda"``; by default the first GPU if there is one.

    Example::

        cosine = TextEmbedder("path/to/checkpoint", cache_folder="embeddings").similarity(pairs)
        TreeRanker().fit(np.column_stack([features, cosine]), labels, qid=query_ids)
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        max_length: int = 256,
        mini_batch_size: int = 32,
        cache_folder: str | os.PathLike[str] | None = None,
        device: str | None = None,
    ) -> None:
        check_integer("max_length", max_length)
        check_integer("mini_batch_size", mini_batch_size)
        self._encoder = load_bi_encoder(model, max_length, device=device)
        self._size = mini_batch_size
        self._cache: Path | None = None
        if cache_folder is not None:
            folder = Path(cache_folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._cache = folder / f"{_model_hash(self._encoder)}.sqlite"

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one vector per text; of length 1 if texts are compared by the cosine."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise DataError("there is a text that is not a string", hint="Give a list of strings.")
        clean = [valid_text(text) for text in texts]
        index = {text: row for row, text in enumerate(dict.fromkeys(clean))}
        distinct = list(index)
        vectors = np.empty((len(distinct), self._encoder.get_embedding_dimension()), np.float32)
        for first in range(0, len(distinct), _AT_ONCE):
            part = distinct[first : first + _AT_ONCE]
            vectors[first : first + len(part)] = self._looked_up(part)
        return vectors[[index[text] for text in clean]]

    def similarity(self, X: Any) -> Doubles:
        """Return the cosine of each query and document, or their dot product.

        Args:
            X: Pairs of texts, or a data frame with columns ``query`` and ``document``.
        """
        pairs = read_pairs(X)
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        vectors = dict(zip(texts, self.embed(texts), strict=True))
        return pair_products(pairs, vectors)

    def _looked_up(self, texts: list[str]) -> Floats:
        if self._cache is None:
            return embed(self._encoder, texts, self._size)
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        with closing(_open(self._cache)) as cache:
            marks = ", ".join("?" * len(keys))
            query = f"SELECT key, vector FROM embeddings WHERE key IN ({marks})"  # noqa: S608 - marks only
            kept = dict(cache.execute(query, keys))
            missing = [row for row, key in enumerate(keys) if key not in kept]
            new = embed(self._encoder, [texts[row] for row in missing], self._size)
            with cache:
                cache.executemany(
                    "INSERT OR IGNORE INTO embeddings VALUES (?, ?)",
                    [
                        (keys[row], vector.tobytes())
                        for row, vector in zip(missing, new, strict=True)
                    ],
                )
        width = 4 * new.shape[1]
        if any(len(content) != width for content in kept.values()):
            raise DataError("has a damaged embedding", path=self._cache, hint="Delete the file.")
        for row, vector in zip(missing, new, strict=True):
            kept[keys[row]] = vector.tobytes()
        return np.frombuffer(b"".join(kept[key] for key in keys), np.float32).reshape(len(keys), -1)


def _open(path: Path) -> sqlite3.Connection:
    cache = sqlite3.connect(path, timeout=60)
    try:
        cache.execute(
            "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
            " WITHOUT ROWID"
        )
    except sqlite3.DatabaseError as error:
        cache.close()
        raise DataError(
            f"is not a cache of embeddings ({error})", path=path, hint="Delete the file."
        ) from error
    return cache


def _model_hash(encoder: Any) -> str:
    """Return a hash of all that an embedding depends on but the text."""
    digest = hashlib.sha256()
    transformer, *parts = encoder
    for name, value in sorted(transformer.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.cpu().numpy().tobytes())
    digest.update(encoder.tokenizer.backend_tokenizer.to_str().encode())
    config = encoder.config.to_dict()
    described = {name: each for name, each in config.items() if name not in _NOT_OF_THE_MODEL}
    digest.update(json.dumps(described, sort_keys=True, default=repr).encode())
    settings = [(type(part).__name__, part.get_config_dict()) for part in parts]
    digest.update(repr((settings, encoder.max_seq_length)).encode())
    return digest.hexdigest()
