"""Rankers of texts as ONNX graphs, which score pairs of texts as the rankers do.

::

    model.onnx        tokens to scores, or, of a bi-encoder, to embeddings
    tokenizer.json    the tokenizer, and its other files
    golden.jsonl      one pair per line: query, document and the ranker's score
    manifest.json     what it is, written last
"""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.files import Reporter
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.export.differences import Finding
from podium.export.folder import ExportFolder, TextInput
from podium.export.targets.onnx import MODEL, inference_session
from podium.kernels import Doubles, Floats

if TYPE_CHECKING:
    from podium.rankers import TextRanker
    from podium.rankers.text_encoder import TextEncoder
    from podium.rankers.text_pairs import Pair

TEXT_TOLERANCE = 1e-4
_TIE = 0.1
"""Scores that differ by this share of the tolerance have no order: rounding decides."""

_TOP = 10
_OPSET = 17
_MOST_BYTES = 2_000_000_000
"""The most that a graph may have in one file, by the format."""

_TOKENIZER = "tokenizer.json"
_QUERIES, _DOCUMENTS = 3, 24
_AT_ONCE = 32
"""The texts that are embedded together."""

_CHARACTERS_PER_TOKEN = 32
"""Texts are cut to this many characters per token before the tokenizer sees them."""


@dataclass(frozen=True)
class TextGraph:
    """An exported graph and its tokenizer, which score without PyTorch.

    Attributes:
        files: The files of the export, by name.
        texts: What the graph takes.
        tokenizer: The tokenizer of the package ``tokenizers``.
        session: What runs the graph.
        path: Where the files are, for messages.
    """

    files: Mapping[str, bytes]
    texts: TextInput
    tokenizer: Any
    session: Any
    path: Path | None

    @classmethod
    def open(
        cls, files: Mapping[str, bytes], texts: TextInput, path: Path | None = None
    ) -> TextGraph:
        """Load the files of an export."""
        try:
            from tokenizers import Tokenizer
        except ImportError as error:  # of the extra text: other exports need none
            raise MissingPackageError("tokenizers", extra="text") from error
        name = _TOKENIZER
        try:
            tokenizer = Tokenizer.from_str(files[name].decode())
            name = MODEL
            session = inference_session(files[name], threads=1)
        except DataError as error:
            raise error.at(MODEL if path is None else path / MODEL) from error
        except Exception as error:  # the package tokenizers raises Exception itself
            raise DataError(
                f"is not the {name} of an export ({error})",
                path=name if path is None else path / name,
                hint="Export it again.",
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(texts.max_length, strategy="longest_first")
        return cls(files, texts, tokenizer, session, path)

    def predict(self, pairs: list[Pair]) -> Doubles:
        """Score pairs one by one, so that none is padded."""
        try:
            if self.texts.architecture == "cross-encoder":
                scores = [float(self._run(query, document)[0]) for query, document in pairs]
                return np.array(scores)
            vectors = {text: self._run(text)[0] for pair in pairs for text in pair}
            products = [float(vectors[query] @ vectors[document]) for query, document in pairs]
            return self.texts.scale * np.array(products)
        except Exception as error:  # tokenizers and ONNX Runtime raise what they like
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            raise DataError(
                f"cannot score the golden pairs ({reason})",
                path=MODEL if self.path is None else self.path / MODEL,
                hint="Export it again.",
            ) from error

    def embed(self, texts: Sequence[str], progress: Reporter | None = None) -> Floats:
        """Return a vector for each text: those of about the same length are run together."""
        if self.texts.architecture != "bi-encoder":
            raise ArgumentError("a cross-encoder embeds no texts", hint="Give a bi-encoder.")
        encoded = self.tokenizer.encode_batch([self._cut(text) for text in texts])
        order = np.argsort([-len(each.ids) for each in encoded], kind="stable")
        parts = []
        for start in range(0, len(order), _AT_ONCE):
            parts.append(self._outputs([encoded[row] for row in order[start : start + _AT_ONCE]]))
            if progress is not None:
                progress(min(start + _AT_ONCE, len(order)), len(order))
        vectors = np.concatenate(parts) if parts else np.empty((0, 0), np.float32)
        return np.asarray(vectors[np.argsort(order)], np.float32)

    def _cut(self, text: str) -> str:
        return text[: _CHARACTERS_PER_TOKEN * self.texts.max_length]

    def _run(self, text: str, second: str | None = None) -> Any:
        return self._outputs([self.tokenizer.encode(text, second)])

    def _outputs(self, encoded: Sequence[Any]) -> Any:
        """Run texts together; the shorter ones are padded with tokens that are masked."""
        longest = max(len(each.ids) for each in encoded)
        tensors = {"input_ids": "ids", "attention_mask": "attention_mask",
                   "token_type_ids": "type_ids"}  # fmt: skip
        inputs = {}
        for each in self.session.get_inputs():
            inputs[each.name] = np.zeros((len(encoded), longest), np.int64)
            for row, tokens in enumerate(encoded):
                values = getattr(tokens, tensors[each.name])
                inputs[each.name][row, : len(values)] = values
        return self.session.run(None, inputs)[0]


def open_graph(folder: str | os.PathLike[str]) -> TextGraph:
    """Load the graph of an export of a text ranker."""
    export = ExportFolder.open(folder)
    if export.manifest.texts is None:
        raise DataError("is not an export of a text ranker", path=folder, hint="Name another one.")
    return TextGraph.open(export.target_files(), export.manifest.texts, export.path)


def encoder_graph(checkpoint: str | os.PathLike[str], max_length: int = 256) -> TextGraph:
    """Return a checkpoint of sentence-transformers, as it is, as a graph that embeds texts."""
    try:
        from podium.rankers.text_encoder import load_bi_encoder
    except ImportError as error:
        raise MissingPackageError("sentence-transformers", extra="text") from error
    return _graph_of(load_bi_encoder(checkpoint, max_length), "bi-encoder")


def text_graph(ranker: TextRanker) -> tuple[TextGraph, list[Pair], Doubles]:
    """Return a ranker as a graph, with pairs of texts and the scores that it gives them."""
    encoder = ranker.encoder_
    pairs = _golden_pairs(encoder)
    scores = ranker.predict(pairs)
    return _graph_of(encoder, ranker.architecture), pairs, scores


def _graph_of(encoder: TextEncoder, architecture: str) -> TextGraph:
    from podium.rankers.text_encoder import score_scale

    size = sum(each.numel() * each.element_size() for each in encoder.parameters())
    if size > _MOST_BYTES:
        raise ArgumentError(
            f"the ranker's weights have {size:,} bytes, and a graph at most {_MOST_BYTES:,}",
            hint="Train a smaller one, by teacher_labels.",
        )
    texts = TextInput(architecture, encoder.max_seq_length, score_scale(encoder))
    files = {MODEL: _graph(encoder, architecture == "bi-encoder")}
    backend = encoder.tokenizer.backend_tokenizer
    backend.no_padding()
    # So that who loads the file alone gives the graph no more tokens than it takes.
    backend.enable_truncation(encoder.max_seq_length, strategy="longest_first")
    with tempfile.TemporaryDirectory(prefix="podium-export-") as folder:
        encoder.tokenizer.save_pretrained(folder)
        files |= {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
    return TextGraph.open(files, texts)


def compare_scores(
    scores: Doubles, pairs: list[Pair], expected: Doubles, tolerance: float
) -> list[Finding]:
    """Return what scores of pairs show: that they differ, or that others are ranked first."""
    off = np.flatnonzero(~(np.abs(scores - expected) <= tolerance))
    findings = []
    if len(off):
        findings.append(Finding("the graph scores otherwise", tuple(off.tolist())))
    queries = [query for query, _ in pairs]
    for query in dict.fromkeys(queries):
        rows = np.array([row for row, each in enumerate(queries) if each == query])
        own, other = (
            rows[np.argsort(-values[rows], kind="stable")][:_TOP] for values in (scores, expected)
        )
        if (np.abs(expected[own] - expected[other]) > _TIE * tolerance).any():
            findings.append(Finding(f"the first {_TOP} documents are others", tuple(own.tolist())))
    return findings


def _graph(encoder: TextEncoder, is_bi_encoder: bool) -> bytes:
    """Trace the transformer and return the bytes of its graph."""
    try:
        return _traced(encoder, is_bi_encoder, own_mask=True)
    except Exception:
        try:
            return _traced(encoder, is_bi_encoder, own_mask=False)
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            raise ArgumentError(
                f"{type(encoder.transformers_model).__name__} cannot be traced ({reason})",
                hint="Train another checkpoint, such as a BERT, for ONNX.",
            ) from error


def _traced(encoder: TextEncoder, is_bi_encoder: bool, *, own_mask: bool) -> bytes:
    import torch

    tokens = encoder.tokenizer(["a b", "c"], padding=True, return_tensors="pt")
    names = list(tokens)
    transformer, parts = encoder.transformers_model, list(encoder)[1:]

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = transformer

        def forward(self, *values: torch.Tensor) -> Any:
            inputs = dict(zip(names, values, strict=True))
            mask = inputs["attention_mask"]
            if own_mask:
                # The mask that transformers make depends on the tokens that they are traced with.
                hidden = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
                inputs["attention_mask"] = hidden.expand(-1, 1, mask.shape[1], -1)
            if not is_bi_encoder:
                return self.module(**inputs).logits.reshape(-1)
            states = self.module(**inputs).last_hidden_state
            features = {"token_embeddings": states, "attention_mask": mask}
            for part in parts:
                features = part(features)
            return features["sentence_embedding"]

    attention = transformer.config._attn_implementation
    training = encoder.training
    encoder.eval()
    # Its other implementations choose their way by the shapes that they are traced with.
    transformer.set_attn_implementation("eager")
    output = "embeddings" if is_bi_encoder else "scores"
    axes = {name: {0: "documents", 1: "tokens"} for name in names} | {output: {0: "documents"}}
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer warns of every constant
            torch.onnx.export(
                Graph(), tuple(tokens[name].to(encoder.device) for name in names),
                buffer,  # type: ignore[arg-type] # the tracer writes to files, too
                input_names=names, output_names=[output], dynamic_axes=axes,
                opset_version=_OPSET, dynamo=False,
            )  # fmt: skip
    finally:
        transformer.set_attn_implementation(attention)
        encoder.train(training)
    return buffer.getvalue()


def _golden_pairs(encoder: TextEncoder) -> list[Pair]:
    """Return pairs of texts of all lengths, drawn from the tokenizer's own vocabulary."""
    tokenizer = encoder.tokenizer
    rng = np.random.default_rng(0)
    special = set(tokenizer.all_special_ids)
    known = [number for number in range(len(tokenizer)) if number not in special]

    def text(tokens: int) -> str:
        chosen = rng.choice(known, tokens).tolist()
        return str(tokenizer.decode(chosen)).encode("utf-8", "replace").decode()

    longest = encoder.max_seq_length
    lengths = np.unique(np.geomspace(1, longest, _DOCUMENTS - 1).astype(int)).tolist()
    lengths += [longest] * (_DOCUMENTS - 1 - len(lengths))
    return [
        (query, document)
        for query in [text(1 + 2 * number) for number in range(_QUERIES)]
        for document in ["", *(text(length) for length in lengths)]
    ]
