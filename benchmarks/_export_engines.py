"""Exports in search engines, or in the classes of engines: each scores every row of a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.export import connect_engine, export_ranker
from podium.export.folder import ExportFolder
from podium.export.targets.elasticsearch import adds_shift, score_shift
from podium.export.writing import ExportSettings
from podium.kernels import Doubles
from podium.rankers import Ranker
from podium.scorers.trees import TreeModel
from tests.engines.engine_parsers import EngineParser
from tests.engines.install import PARSERS, installed
from tests.engines.servers import OpenSearchServer, Solr9Server, SolrServer


@dataclass(frozen=True)
class ScoringEngine:
    """An engine that scores.

    Attributes:
        name: What it is called in the report.
        target: The target of exports.
        score_rows: Scores rows by an export.
        version: The version to export for; by default that of the target.
        takes_missing: Whether its trees know missing values.
        takes_negative: Whether a feature may be negative.
        same_digits: Whether every digit is that of its arithmetic.
    """

    name: str
    target: str
    score_rows: Callable[[ExportFolder, Doubles], Doubles]
    version: str | None = None
    takes_missing: bool = True
    takes_negative: bool = True
    same_digits: bool = True

    def takes(self, data: Dataset) -> bool:
        """Whether it can have the values of a data set."""
        values = data.features
        if not self.takes_missing and np.isnan(values).any():
            return False
        return self.takes_negative or not bool((values < 0).any())

    def score(self, export_to: Path, ranker: Ranker | Path, data: Dataset) -> Doubles | None:
        """Return the engine's score of each row; None if it cannot express the ranker."""
        settings = ExportSettings(
            self.version, never_missing=not self.takes_missing, golden_rows=300
        )
        try:
            export = export_ranker(ranker, self.target, export_to, settings)
        except ArgumentError:
            return None
        return self.score_rows(export, data.features.astype(np.float64))


def engines() -> Iterator[tuple[str, AbstractContextManager[ScoringEngine] | None]]:
    """Yield each engine's name and how to start it; None if it is not installed."""
    yield "OpenSearch", _opensearch() if installed("opensearch-ltr") else None
    yield "Solr 8", _solr("Solr 8", SolrServer, "8.11") if installed("solr") else None
    yield "Solr 9", _solr("Solr 9", Solr9Server, "9.2") if installed("solr-9") else None
    for name in PARSERS:
        yield f"classes of {name}", _parser(name) if installed(name) else None


@contextmanager
def _opensearch() -> Iterator[ScoringEngine]:
    with OpenSearchServer() as server:
        score = _live("opensearch", server.url)
        yield ScoringEngine("OpenSearch", "opensearch", score, "3.8", takes_negative=False)


@contextmanager
def _solr(name: str, kind: type[SolrServer], version: str) -> Iterator[ScoringEngine]:
    with kind() as server:
        score = _live("solr", server.core)
        yield ScoringEngine(name, "solr", score, version, takes_missing=version != "8.11")


def _live(target: str, url: str) -> Callable[[ExportFolder, Doubles], Doubles]:
    def score(export: ExportFolder, rows: Doubles) -> Doubles:
        engine = connect_engine(target, url)
        engine.put(export)
        return engine.score(export, rows)

    return score


@contextmanager
def _parser(name: str) -> Iterator[ScoringEngine]:
    """Start the classes of an engine; Elasticsearch's add a constant to scores from 8.19 on."""
    with EngineParser(name) as parser:
        version = tuple(map(int, parser.version().split(".")))

        def score(export: ExportFolder, rows: Doubles) -> Doubles:
            scores = parser.score(export, rows)
            model = export.reference()
            if name == "vespa" or not adds_shift(version):
                return scores
            assert isinstance(model, TreeModel)
            return scores - score_shift(model)

        target, negative = name.partition("-")[0], name == "vespa"
        title = f"{target.title()} {parser.version()}"
        yield ScoringEngine(title, target, score, takes_negative=negative, same_digits=False)
