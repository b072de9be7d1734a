"""Rankers of texts as ONNX graphs, with pairs of texts that prove that they score the same.

::

    model.onnx        tokens to scores, or, of a bi-encoder, to embeddings
    tokenizer.json    the tokenizer, and its other files
    golden.jsonl      one pair per line: query, document and the ranker's score
    manifest.json     what it is, written last
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.data.atomic import atomic_write
from podium.data.json_lines import json_line, json_lines, parse_json
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.export.differences import Finding
from podium.export.folder import GOLDEN, MANIFEST
from podium.export.targets.onnx import MODEL, inference_session
from podium.export.verifying import Verification
from podium.kernels import Doubles

if TYPE_CHECKING:
    from podium.rankers import TextRanker
    from podium.rankers.text_encoder import TextEncoder
    from podium.rankers.text_pairs import Pair

_TOLERANCE = 1e-4
_TIE = 0.1
"""Scores that differ by this share of the tolerance have no order: rounding decides."""

_TOP = 10
_OPSET = 17
_MOST_BYTES = 2_000_000_000
"""The most that a graph may have in one file, by the format."""

_QUERIES, _DOCUMENTS = 3, 24
_KIND = "texts"


@dataclass(frozen=True)
class TextManifest:
    """What an export of a ranker of texts is.

    Attributes:
        architecture: ``cross-encoder`` or ``bi-encoder``.
        max_length: The maximum number of tokens that the graph is given.
        scale: What similarities of embeddings are multiplied by; 1 for a cross-encoder.
        tolerance: The largest difference of a score that rounding explains.
        versions: The versions of the packages that wrote it.
        files: The SHA-256 of every other file.
    """

    architecture: str
    max_length: int
    scale: float
    tolerance: float
    versions: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def export_text_ranker(
    ranker: TextRanker | str | os.PathLike[str], folder: str | os.PathLike[str]
) -> TextManifest:
    """Write a ranker of texts as an ONNX graph, and check the graph before anyone uses it.

    Args:
        ranker: A fitted ranker, or the folder of a saved one.
        folder: The folder to write.

    Raises:
        ArgumentError: If the folder is that of the ranker, or its weights are too large.
        DataError: If the graph scores pairs of texts otherwise, or ranks others first.

    Example:
        >>> export_text_ranker("reranker", "reranker.onnx").architecture  # doctest: +SKIP
        'cross-encoder'
    """
    from podium.rankers import TextRanker

    if not isinstance(ranker, TextRanker) and realpath(ranker) == realpath(folder):
        raise ArgumentError(f"{folder} is the ranker's own folder", hint="Name another folder.")
    fitted = ranker if isinstance(ranker, TextRanker) else TextRanker.load(ranker)
    encoder = fitted.encoder_
    size = sum(each.numel() * each.element_size() for each in encoder.module.parameters())
    if size > _MOST_BYTES:
        raise ArgumentError(
            f"the ranker's weights have {size:,} bytes, and a graph at most {_MOST_BYTES:,}",
            hint="Train a smaller one, by teacher_labels.",
        )
    pairs = _golden_pairs(encoder)
    scores = fitted.predict(pairs)
    module = encoder.module
    is_bi_encoder = fitted.architecture == "bi-encoder"
    cosine = is_bi_encoder and module.similarity == "cosine"
    scale = float(module.log_scale.detach().exp()) if cosine else 1.0
    graph = _graph(encoder, is_bi_encoder)
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / MANIFEST).unlink(missing_ok=True)
    backend = encoder.tokenizer.backend_tokenizer
    backend.no_padding()
    # So that who loads the file alone gives the graph no more tokens than it takes.
    backend.enable_truncation(encoder.max_length, strategy="longest_first")
    written = {Path(name).name for name in encoder.tokenizer.save_pretrained(path)}
    lines = [
        json_line({"query": query, "document": document, "score": score})
        for (query, document), score in zip(pairs, scores.tolist(), strict=True)
    ]
    for name, content in ((MODEL, graph), (GOLDEN, b"".join(lines))):
        with atomic_write(path / name) as file:
            file.write(content)
    names = sorted({name for name in written if (path / name).is_file()} | {MODEL, GOLDEN})
    manifest = TextManifest(
        fitted.architecture, encoder.max_length, scale,
        _TOLERANCE * max(1.0, float(np.abs(scores).max())),
        {"podium": version("podium-rank")}
        | {package: version(package) for package in ("onnx", "torch", "transformers")},
        {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in names},
    )  # fmt: skip
    verification = _verify(path, manifest)
    if not verification.holds:
        reasons = "; ".join(finding.text for finding in verification.findings)
        raise DataError(
            f"the graph does not score as the ranker does ({reasons})", path=path,
            hint="Report this as an error of Podium, with the ranker's architecture.",
        )  # fmt: skip
    described = {"format": 1, "kind": _KIND, **asdict(manifest)}
    with atomic_write(path / MANIFEST) as file:
        file.write(json.dumps(described, indent=1).encode() + b"\n")
    return manifest


def is_text_export(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is what ``export_text_ranker`` wrote."""
    try:
        content = json.loads((Path(folder) / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("kind") == _KIND


def verify_text_export(folder: str | os.PathLike[str]) -> Verification:
    """Score the golden pairs by the files of an export; files must be as they were written.

    Example:
        >>> verify_text_export("reranker.onnx").holds  # doctest: +SKIP
        True
    """
    path = Path(folder)
    try:
        content = parse_json((path / MANIFEST).read_bytes())
        if content.pop("format") != 1 or content.pop("kind") != _KIND:
            raise ValueError("it is of another kind")
        manifest = TextManifest(**content)
        _check_manifest(manifest)
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"is not the manifest of an export ({error})", path=path / MANIFEST,
            hint="Export it again.",
        ) from error  # fmt: skip
    return _verify(path, manifest)


def _check_manifest(manifest: TextManifest) -> None:
    """Raise a ValueError for what would end up in a path or a calculation."""
    if not {MODEL, GOLDEN} <= set(dict(manifest.files)):
        raise ValueError("it does not list its graph and its golden pairs")
    if any(Path(name).name != name for name in manifest.files):
        raise ValueError("it names files elsewhere")
    if manifest.architecture not in ("cross-encoder", "bi-encoder"):
        raise ValueError("it has another architecture")
    if not isinstance(manifest.max_length, int) or manifest.max_length < 1:
        raise ValueError("its maximum length is not a positive integer")
    if not (manifest.tolerance >= 0 and manifest.scale > 0):
        raise ValueError("its tolerance or its scale is not a positive number")


def _verify(path: Path, manifest: TextManifest) -> Verification:
    changed = [name for name, digest in manifest.files.items() if _digest(path / name) != digest]

    def parse(content: dict[str, Any]) -> tuple[str, str, float]:
        try:
            return str(content["query"]), str(content["document"]), float(content["score"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"is not a golden pair ({error})", hint="Export it again.") from error

    rows = list(json_lines(path / GOLDEN, parse))
    expected = np.array([score for *_, score in rows])
    pairs = [(query, document) for query, document, _ in rows]
    try:
        scores = OnnxTextRanker(path, manifest).predict(pairs)
    except (DataError, MissingPackageError):  # they say what to do already
        raise
    except Exception as error:  # tokenizers and ONNX Runtime raise what they like
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise DataError(
            f"cannot score the golden pairs ({reason})", path=path / MODEL, hint="Export it again."
        ) from error
    differences = np.abs(scores - expected)
    off = tuple(np.flatnonzero(~(differences <= manifest.tolerance)).tolist())
    findings = [Finding(f"{name} is not as it was written", ()) for name in changed]
    if off:
        findings.append(Finding("the graph scores otherwise", off))
    tie = _TIE * manifest.tolerance
    findings += _order_findings([query for query, _ in pairs], scores, expected, tie)
    largest = float(differences.max(initial=0.0))
    return Verification(
        len(rows), off, largest, manifest.tolerance, tuple(findings), tuple(changed)
    )


def _order_findings(
    queries: list[str], scores: Doubles, expected: Doubles, tie: float
) -> list[Finding]:
    findings = []
    for query in dict.fromkeys(queries):
        rows = np.array([row for row, each in enumerate(queries) if each == query])
        own, other = (
            rows[np.argsort(-values[rows], kind="stable")][:_TOP] for values in (scores, expected)
        )
        if (np.abs(expected[own] - expected[other]) > tie).any():
            findings.append(Finding(f"the first {_TOP} documents are others", tuple(own.tolist())))
    return findings


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


class OnnxTextRanker:
    """Scores pairs of texts by an exported graph, without PyTorch.

    Args:
        folder: What ``export_text_ranker`` wrote.
        manifest: What it is.
    """

    def __init__(self, folder: Path, manifest: TextManifest) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:  # of the extra text: other exports need none
            raise MissingPackageError("tokenizers", extra="text") from error

        self._manifest = manifest
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # the package raises Exception itself
            raise DataError(
                f"is not a tokenizer ({error})", path=folder / "tokenizer.json",
                hint="Export it again.",
            ) from error  # fmt: skip
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(manifest.max_length, strategy="longest_first")
        try:
            self._session = inference_session((folder / MODEL).read_bytes(), threads=1)
        except DataError as error:
            raise error.at(folder / MODEL) from error
        self._inputs = [each.name for each in self._session.get_inputs()]

    def predict(self, pairs: list[Pair]) -> Doubles:
        """Score pairs one by one, so that none is padded."""
        if self._manifest.architecture == "cross-encoder":
            scores = [float(self._run(query, document)[0]) for query, document in pairs]
            return np.array(scores)
        vectors = {text: self._run(text)[0] for pair in pairs for text in pair}
        products = [float(vectors[query] @ vectors[document]) for query, document in pairs]
        return self._manifest.scale * np.array(products)

    def _run(self, text: str, second: str | None = None) -> Any:
        encoded = self._tokenizer.encode(text, second)
        tensors = {
            "input_ids": encoded.ids, "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }  # fmt: skip
        inputs = {name: np.array([tensors[name]], np.int64) for name in self._inputs}
        return self._session.run(None, inputs)[0]


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
                f"{type(encoder.module).__name__} cannot be traced ({reason})",
                hint="Train another checkpoint, such as a BERT, for ONNX.",
            ) from error


def _traced(encoder: TextEncoder, is_bi_encoder: bool, *, own_mask: bool) -> bytes:
    import torch

    tokens = encoder.tokenizer(["a b", "c"], padding=True, return_tensors="pt")
    names = list(tokens)
    module = encoder.module

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *values: torch.Tensor) -> Any:
            inputs = dict(zip(names, values, strict=True))
            mask = inputs["attention_mask"]
            if own_mask:
                # The mask that transformers make depends on the tokens that they are traced with.
                hidden = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
                inputs["attention_mask"] = hidden.expand(-1, 1, mask.shape[1], -1)
            if is_bi_encoder:
                states = self.module.transformer(**inputs).last_hidden_state
                return self.module.pool(states, mask)
            return self.module(**inputs).logits.reshape(-1)

    transformer = module.transformer if is_bi_encoder else module
    attention = transformer.config._attn_implementation
    training = module.training
    module.eval()
    # Its other implementations choose their way by the shapes that they are traced with.
    transformer.set_attn_implementation("eager")
    output = "embeddings" if is_bi_encoder else "scores"
    axes = {name: {0: "documents", 1: "tokens"} for name in names} | {output: {0: "documents"}}
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tracer warns of every constant
            torch.onnx.export(
                Graph(), tuple(tokens[name].to(next(module.parameters()).device) for name in names),
                buffer,  # type: ignore[arg-type] # the tracer writes to files, too
                input_names=names, output_names=[output], dynamic_axes=axes,
                opset_version=_OPSET, dynamo=False,
            )  # fmt: skip
    finally:
        transformer.set_attn_implementation(attention)
        module.train(training)
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

    longest = encoder.max_length
    lengths = np.unique(np.geomspace(1, longest, _DOCUMENTS - 1).astype(int)).tolist()
    lengths += [longest] * (_DOCUMENTS - 1 - len(lengths))
    return [
        (query, document)
        for query in [text(1 + 2 * number) for number in range(_QUERIES)]
        for document in ["", *(text(length) for length in lengths)]
    ]
