"""Fusions of result lists for search engines: each one's files, their reader, its arithmetic.

::

    pipeline.json     OpenSearch: a search pipeline; search.json: a search with it
    retriever.json    Elasticsearch: the body of a search with a linear or rrf retriever
    rank-profile.sd   Vespa: a rank profile with a global phase
    request.json      Solr: a request with function queries
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from podium.data.json_lines import parse_json
from podium.errors import ArgumentError, DataError
from podium.export.targets.opensearch import field_value
from podium.export.targets.vespa import Vespa
from podium.hybrid.fusion import Fusion, Normalization, fuse
from podium.kernels import Doubles, Floats, Ints
from podium.registry import Registry

PIPELINE, SEARCH = "pipeline.json", "search.json"
_RETRIEVER, _PROFILE, _REQUEST = "retriever.json", "rank-profile.sd", "request.json"
_DEPTH = 100
_MOST_OPENSEARCH = 5
_ABSENT = "-1.0e39"
"""Below what single precision has: Vespa's normalizer leaves such values out."""

_OPENSEARCH_NAMES = {"min-max": "min_max", "l2": "l2", "z-score": "z_score", "rank": "rrf"}
_ELASTICSEARCH_NAMES = {"min-max": "minmax", "l2": "l2_norm", "none": "none"}


@dataclass(frozen=True)
class FusionRequest:
    """What is to be written.

    Attributes:
        fusion: The fusion.
        names: The names of its lists in the engine.
        model_name: The name in the engine.
        version: The version of the engine.
        extractors: How the engine finds each list, in its own terms, by these names.
    """

    fusion: Fusion
    names: tuple[str, ...]
    model_name: str
    version: str
    extractors: Mapping[str, Any] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many documents of each list the engine fuses."""
        return self.fusion.depth or _DEPTH


class FusionTarget(ABC):
    """A search engine that fuses lists."""

    name: ClassVar[str]
    title: ClassVar[str]
    tolerance: ClassVar[float] = 0.0
    """The largest difference of a score, as a share of the largest score, by rounding."""
    reserved_names: ClassVar[frozenset[str]] = frozenset()
    """Names that no list may have there."""
    unverified: ClassVar[str] = ""
    """What no engine in Podium's tests has confirmed, in words."""

    def default_version(self, fusion: Fusion) -> str:
        """Return the oldest version that can express a fusion; refuse what none can."""
        if fusion.per_query is not None:
            self.refuse(
                "weights that depend on the query",
                "Tune without --per-query, or send each search with weights of its own.",
            )
        if fusion.columns:
            self.refuse(
                f"a number of the documents ({fusion.columns[0]})",
                "Tune without --column, and let the engine rescore by it.",
            )
        return self._oldest(fusion)

    @abstractmethod
    def _oldest(self, fusion: Fusion) -> str:
        """Return the oldest version that can express a fusion with fixed weights."""

    @abstractmethod
    def write(self, request: FusionRequest) -> dict[str, bytes]:
        """Return the target's files."""

    @abstractmethod
    def read(self, files: Mapping[str, bytes], names: tuple[str, ...]) -> Fusion:
        """Return the fusion that the target's files describe."""

    @abstractmethod
    def scores(self, fusion: Fusion, votes: Doubles, offsets: Ints) -> Doubles:
        """Score the documents of queries by the target's own rules; see ``podium.hybrid.fuse``."""

    def limits(self, fusion: Fusion) -> tuple[str, ...]:
        """Return what the target does otherwise, in words."""
        del fusion
        return ()

    def refuse(self, what: str, hint: str) -> NoReturn:
        """Raise the error for what the target cannot express."""
        raise ArgumentError(f"{self.title} does not fuse by {what}", hint=hint)


class OpenSearchFusion(FusionTarget):
    """A search pipeline: ``PUT _search/pipeline/NAME``, and a search that uses it."""

    name = "opensearch"
    title = "OpenSearch"
    unverified = (
        "unverified live: no registry has OpenSearch's neural-search plugin, which fuses lists"
    )

    def _oldest(self, fusion: Fusion) -> str:
        normalization, combination = fusion.normalization, fusion.combination
        if normalization == "none":
            self.refuse("scores as they are", "Choose min-max or l2, or export to elasticsearch.")
        if normalization == "z-score" and combination != "arithmetic":
            self.refuse(f"a {combination} mean of z-scores", "Choose the arithmetic mean.")
        if len(fusion.lists) > _MOST_OPENSEARCH:
            self.refuse(
                f"{len(fusion.lists)} lists", f"Choose the best {_MOST_OPENSEARCH} of them."
            )
        if combination == "rrf":
            return "2.19" if _equal(fusion) else "3.1"
        return "3.0" if normalization in ("z-score", "rank") else "2.10"

    def write(self, request: FusionRequest) -> dict[str, bytes]:
        """Write the pipeline and a search."""
        fusion = request.fusion
        if fusion.combination == "rrf":
            combination: dict[str, Any] = {
                "technique": "rrf",
                "rank_constant": fusion.rank_constant,
            }
            if not _equal(fusion):
                combination["parameters"] = {"weights": list(fusion.weights)}
            processor = {"score-ranker-processor": {"combination": combination}}
        else:
            normalization: dict[str, Any] = {"technique": _OPENSEARCH_NAMES[fusion.normalization]}
            if fusion.normalization == "rank":
                normalization["parameters"] = {"rank_constant": fusion.rank_constant}
            combination = {
                "technique": f"{fusion.combination}_mean",
                "parameters": {"weights": list(fusion.weights)},
            }
            processor = {
                "normalization-processor": {
                    "normalization": normalization, "combination": combination,
                }
            }  # fmt: skip
        pipeline = {"description": str(fusion), "phase_results_processors": [processor]}
        queries = [request.extractors.get(name, field_value(name)) for name in request.names]
        hybrid = {"queries": queries, "pagination_depth": request.depth}
        search = {"query": {"hybrid": hybrid}, "search_pipeline": request.model_name}
        return {PIPELINE: _json(pipeline), SEARCH: _json(search)}

    def read(self, files: Mapping[str, bytes], names: tuple[str, ...]) -> Fusion:
        """Read the pipeline as OpenSearch does."""
        (processor,) = parse_json(files[PIPELINE])["phase_results_processors"]
        hybrid = parse_json(files[SEARCH])["query"]["hybrid"]
        _require_lists(len(hybrid["queries"]), names)
        ((kind, clauses),) = processor.items()
        combination = clauses["combination"]
        weights = tuple(combination.get("parameters", {}).get("weights", ()))
        if not all(isinstance(weight, float) for weight in weights):
            raise DataError("a weight is not written with a decimal point", hint="Write 1.0.")
        if kind == "score-ranker-processor":
            return Fusion(
                names, "rank", "rrf", weights, combination.get("rank_constant", 60),
                depth=hybrid["pagination_depth"],
            )  # fmt: skip
        if kind != "normalization-processor":
            raise DataError("the pipeline has another processor", hint="Export it again.")
        own = {name: each for each, name in _OPENSEARCH_NAMES.items()}
        normalization = clauses["normalization"]
        constant = normalization.get("parameters", {}).get("rank_constant", 60)
        technique: Any = combination["technique"].removesuffix("_mean")
        return Fusion(
            names, own[normalization["technique"]], technique, weights, constant,  # type: ignore[arg-type] # Fusion checks it
            depth=hybrid["pagination_depth"],
        )  # fmt: skip

    def scores(self, fusion: Fusion, votes: Doubles, offsets: Ints) -> Doubles:
        """Score as Podium does: its formulas are OpenSearch's."""
        weights = None
        if fusion.combination == "rrf" and _equal(fusion):  # written without weights: each is 1
            weights = np.ones((len(offsets) - 1, len(fusion.lists)))
        return fuse(votes, offsets, fusion, query_weights=weights)

    def limits(self, fusion: Fusion) -> tuple[str, ...]:
        """Return what depends on shards."""
        limits = ["Every shard of an index adds its own first documents to each list."]
        if fusion.normalization == "rank":
            limits.append("Before version 3.5, each shard ranks its documents for itself.")
        return tuple(limits)


class ElasticsearchFusion(FusionTarget):
    """The body of a search with the retriever ``linear`` or ``rrf``."""

    name = "elasticsearch"
    title = "Elasticsearch"
    unverified = "unverified live: no registry has a server of Elasticsearch with its retrievers"

    def _oldest(self, fusion: Fusion) -> str:
        if fusion.combination in ("geometric", "harmonic"):
            self.refuse(f"a {fusion.combination} mean", "Choose the arithmetic mean, or rrf.")
        if fusion.normalization == "z-score":
            self.refuse("z-scores", "Choose min-max, l2, none or rrf.")
        if fusion.normalization == "rank":
            return "8.16" if _equal(fusion) else "9.2"
        # Before, a list of one document kept its raw score.
        return "8.19"

    def write(self, request: FusionRequest) -> dict[str, bytes]:
        """Write the retriever: a list's extractor is a retriever, too."""
        fusion = request.fusion
        retrievers = [
            request.extractors.get(name, {"standard": {"query": field_value(name)}})
            for name in request.names
        ]
        body: dict[str, Any] = {"rank_window_size": request.depth}
        if fusion.normalization == "rank":
            kind, body["rank_constant"] = "rrf", fusion.rank_constant
        else:
            kind = "linear"
        parts: list[dict[str, Any]] = [{"retriever": each} for each in retrievers]
        for part, weight in zip(parts, fusion.weights, strict=True):
            part["weight"] = weight
            if kind == "linear":
                part["normalizer"] = _ELASTICSEARCH_NAMES[fusion.normalization]
        weighted = kind == "linear" or not _equal(fusion)
        body["retrievers"] = parts if weighted else retrievers
        return {_RETRIEVER: _json({"retriever": {kind: body}})}

    def read(self, files: Mapping[str, bytes], names: tuple[str, ...]) -> Fusion:
        """Read the retriever as Elasticsearch does."""
        ((kind, body),) = parse_json(files[_RETRIEVER])["retriever"].items()
        parts = body["retrievers"]
        _require_lists(len(parts), names)
        depth = body["rank_window_size"]
        weights = tuple(part.get("weight", 1.0) for part in parts)
        if kind == "rrf":
            return Fusion(names, "rank", "rrf", weights, body["rank_constant"], depth=depth)
        own = {name: each for each, name in _ELASTICSEARCH_NAMES.items()}
        normalizers = {part["normalizer"] for part in parts}
        if kind != "linear" or len(normalizers) > 1:
            raise DataError("the retriever is another", hint="Export it again.")
        return Fusion(names, own[normalizers.pop()], weights=weights, depth=depth)  # type: ignore[arg-type] # Fusion checks it

    def scores(self, fusion: Fusion, votes: Doubles, offsets: Ints) -> Doubles:
        """Add up the lists' weighted scores in single precision; nothing for a missing document."""
        plain = fusion.normalization == "rank" and _equal(fusion)  # written without weights
        weights = (1.0,) * len(fusion.lists) if plain else fusion.weights

        def normalized(values: Floats) -> Floats:
            single = np.float32
            if fusion.normalization == "rank":
                return single(1) / (fusion.rank_constant + _ranks(values)).astype(single)
            if fusion.normalization == "min-max":
                low, high = values.min(), max(values.max(), np.float32(1.4e-45))
                if abs(low - high) < single(1e-6):
                    return np.ones_like(values)
                return np.asarray((values - low) / (high - low))
            if fusion.normalization == "l2":
                squares = values[np.argsort(-values, kind="stable")] ** 2
                norm = np.sqrt(sum(squares.astype(np.float64).tolist()))
                return values if norm < single(1e-6) else (values / norm).astype(single)
            return values

        return _weighted_sums(fusion, weights, votes, offsets, normalized, np.float32)

    def limits(self, fusion: Fusion) -> tuple[str, ...]:
        """Return how the retrievers differ."""
        if fusion.normalization == "min-max":
            return ("A list's last document scores 0, as one that is not in the list.",)
        return ()


class VespaFusion(FusionTarget):
    """A rank profile whose global phase normalizes and adds up the lists' features.

    A list has the documents whose feature is above 0.
    """

    name = "vespa"
    title = "Vespa"
    tolerance = 1e-12
    reserved_names = Vespa.reserved_names | {"if", "max", "normalize_linear", "reciprocal_rank"}
    unverified = "unverified live: no registry has a server of Vespa (its classes were compared)"

    def _oldest(self, fusion: Fusion) -> str:
        if fusion.combination in ("geometric", "harmonic"):
            self.refuse(f"a {fusion.combination} mean", "Choose the arithmetic mean.")
        if fusion.normalization in ("l2", "z-score"):
            self.refuse(fusion.normalization, "Choose min-max, none or rrf.")
        return "8"

    def write(self, request: FusionRequest) -> dict[str, bytes]:
        """Write the rank profile."""
        fusion = request.fusion
        functions, terms = [], []
        for name, weight in zip(request.names, fusion.weights, strict=True):
            value = request.extractors.get(name, f"attribute({name})")
            functions.append(f"    function {name}() {{\n        expression: {value}\n    }}\n")
            functions.append(
                f"    function {name}_or_absent() {{\n"
                f"        expression: if ({name} > 0, {name}, {_ABSENT})\n    }}\n"
            )
            if fusion.normalization == "rank":
                score = f"reciprocal_rank({name}_or_absent, {fusion.rank_constant})"
            elif fusion.normalization == "min-max":
                score = f"max(0.001, normalize_linear({name}_or_absent))"
            else:
                score = name
            terms.append(f"if ({name} > 0, {float(weight)!r} * {score}, 0)")
        profile = (
            f"rank-profile {request.model_name} {{\n{''.join(functions)}"
            f"    first-phase {{\n        expression: {' + '.join(request.names)}\n    }}\n"
            f"    global-phase {{\n        rerank-count: {request.depth * len(terms)}\n"
            f"        expression: {' + '.join(terms)}\n    }}\n}}\n"
        )
        return {_PROFILE: profile.encode()}

    def read(self, files: Mapping[str, bytes], names: tuple[str, ...]) -> Fusion:
        """Read the terms of the global phase."""
        text = files[_PROFILE].decode()
        phase = text.partition("global-phase {")[2]
        (expression,) = re.findall(r"expression: (.*)\n", phase)
        (count,) = re.findall(r"rerank-count: (\d+)\n", phase)
        weights: list[float] = []
        kinds: set[Normalization] = set()
        constants = {60}
        terms = expression.split(" + ")
        _require_lists(len(terms), names)
        for name, term in zip(names, terms, strict=True):
            match = re.fullmatch(rf"if \({name} > 0, (\S+) \* (.*), 0\)", term)
            if match is None:
                raise DataError(f"the term of {name} is another", hint="Export it again.")
            weights.append(float(match[1]))
            ranks = re.fullmatch(rf"reciprocal_rank\({name}_or_absent, (\d+)\)", match[2])
            if ranks is not None:
                constants = {int(ranks[1])}
                kinds.add("rank")
            elif match[2] == f"max(0.001, normalize_linear({name}_or_absent))":
                kinds.add("min-max")
            elif match[2] == name:
                kinds.add("none")
            else:
                raise DataError(f"the term of {name} is another", hint="Export it again.")
        (kind,), (constant,) = kinds, constants
        combination: Any = "rrf" if kind == "rank" else "arithmetic"
        return Fusion(
            names, kind, combination, tuple(weights), constant, depth=int(count) // len(names)
        )

    def scores(self, fusion: Fusion, votes: Doubles, offsets: Ints) -> Doubles:
        """Add up the lists' weighted scores in double precision."""

        def normalized(values: Doubles) -> Doubles:
            if fusion.normalization == "rank":
                return 1 / (fusion.rank_constant + 1.0 + (_ranks(values) - 1))
            if fusion.normalization == "min-max":
                low, high = values.min(), values.max()
                scale, middle = 0.0, 0.0
                if high > low:
                    scale, middle = 1 / (high - low), (low + high) * 0.5
                return np.maximum(0.001, 0.5 + scale * (values - middle))
            return values

        positive = np.where(votes > 0, votes, np.nan)
        return _weighted_sums(fusion, fusion.weights, positive, offsets, normalized, np.float64)

    def limits(self, fusion: Fusion) -> tuple[str, ...]:
        """Return how the normalizers differ."""
        limits = ["A document whose feature is 0 or less is not in the list."]
        if fusion.normalization == "min-max":
            limits.append("In a list of one document, or of equal scores, documents have 0.5.")
        return tuple(limits)


class SolrFusion(FusionTarget):
    """A request whose score is a sum of function queries, one for each list."""

    name = "solr"
    title = "Solr"

    def _oldest(self, fusion: Fusion) -> str:
        if fusion.combination in ("geometric", "harmonic"):
            self.refuse(f"a {fusion.combination} mean", "Choose the arithmetic mean.")
        if fusion.normalization not in ("min-max", "none"):
            hint = "Choose min-max or none."
            self.refuse("ranks" if fusion.normalization == "rank" else fusion.normalization, hint)
        return "9.0"

    def write(self, request: FusionRequest) -> dict[str, bytes]:
        """Write the request: a list's extractor is a query of its own."""
        terms = []
        for name, weight in zip(request.names, request.fusion.weights, strict=True):
            score = f"query($list_{name})"
            if request.fusion.normalization == "min-max":
                score = f"max(scale({score},0,1),0.001)"
            terms.append(f"if(exists(query($list_{name})),product({float(weight)!r},{score}),0)")
        lists = {
            f"list_{name}": request.extractors.get(name, f"{{!boost b={name}}}{name}:[* TO *]")
            for name in request.names
        }
        clauses = " ".join(f"should=$list_{name}" for name in request.names)
        body = {
            "query": f"{{!func}}sum({','.join(terms)},0)",
            "filter": f"{{!bool {clauses}}}",
            "params": lists,
        }
        return {_REQUEST: _json(body)}

    def read(self, files: Mapping[str, bytes], names: tuple[str, ...]) -> Fusion:
        """Read the function of the request."""
        function = parse_json(files[_REQUEST])["query"]
        weights: list[float] = []
        kinds: set[Normalization] = set()
        number = r"([0-9.e+-]+)"
        for name in names:
            query = re.escape(f"query($list_{name})")
            head = rf"if\(exists\({query}\),product\({number},"
            scaled = re.findall(rf"{head}max\(scale\({query},0,1\),0\.001\)\),0\)", function)
            plain = re.findall(rf"{head}{query}\),0\)", function)
            if len(scaled) + len(plain) != 1:
                raise DataError(f"the term of {name} is another", hint="Export it again.")
            kinds.add("min-max" if scaled else "none")
            weights.append(float([*scaled, *plain][0]))
        _require_lists(function.count("exists("), names)
        (kind,) = kinds
        return Fusion(names, kind, weights=tuple(weights))

    def scores(self, fusion: Fusion, votes: Doubles, offsets: Ints) -> Doubles:
        """Add up the lists' weighted scores in single precision."""

        def normalized(values: Floats) -> Floats:
            if fusion.normalization == "none":
                return values
            low, high = values.min(), values.max()
            scale = np.float32(0) if high == low else np.float32(1) / (high - low)
            return np.asarray(np.maximum((values - low) * scale, np.float32(0.001)))

        whole = replace(fusion, depth=None)
        return _weighted_sums(whole, fusion.weights, votes, offsets, normalized, np.float32)

    def limits(self, fusion: Fusion) -> tuple[str, ...]:
        """Return how the function differs."""
        limits = []
        if fusion.depth is not None:
            limits.append(f"A list has all documents that match its query, not {fusion.depth}.")
        if fusion.normalization == "min-max":
            limits.append("In a list of one document, or of equal scores, documents have 0.001.")
            limits.append("Each shard of a collection scales the scores of its own documents.")
        return tuple(limits)


FUSION_TARGETS: Registry[FusionTarget] = Registry(
    "target for fusions",
    {
        each.name: each
        for each in (OpenSearchFusion(), ElasticsearchFusion(), VespaFusion(), SolrFusion())
    },
)
"""The search engines that fuse lists, by the names of targets."""


def _weighted_sums(
    fusion: Fusion,
    weights: Sequence[float],
    votes: Doubles,
    offsets: Ints,
    normalized: Callable[[Any], Any],
    kind: Any,
) -> Doubles:
    """Return the sum of each document's normalized scores times the lists' weights."""
    sums = np.zeros(len(votes), kind)
    for begin, end in pairwise(offsets.tolist()):
        for column, weight in enumerate(weights):
            values = votes[begin:end, column].astype(np.float32).astype(kind)
            rows = np.flatnonzero(~np.isnan(values))
            if fusion.depth is not None:
                rows = rows[np.argsort(-values[rows], kind="stable")[: fusion.depth]]
            if len(rows):
                sums[begin + rows] += kind(weight) * normalized(values[rows])
    return sums.astype(np.float64)


def _ranks(values: NDArray[np.floating[Any]]) -> Ints:
    """Return the rank of each score from 1; documents that tie keep their order."""
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


def _equal(fusion: Fusion) -> bool:
    return len(set(fusion.weights)) == 1


def _require_lists(count: int, names: Sequence[str]) -> None:
    if count != len(names):
        raise DataError(
            f"the file fuses {count} lists, the export {len(names)}", hint="Export it again."
        )


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1, allow_nan=False).encode() + b"\n"
