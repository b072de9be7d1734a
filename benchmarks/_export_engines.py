"""Exports in running search engines: each scores every row of a data set itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.export import ExportSettings, connect_engine, export_ranker
from podium.kernels import Doubles
from podium.rankers import Ranker
from tests.engines.install import installed
from tests.engines.servers import OpenSearchServer, Server, Solr9Server, SolrServer


@dataclass(frozen=True)
class RunningEngine:
    """An engine that runs.

    Attributes:
        name: What it is called in the report.
        target: The target of exports.
        url: Its address.
        version: The version to export for.
        takes_missing: Whether its trees know missing values.
        takes_negative: Whether a feature may be negative.
    """

    name: str
    target: str
    url: str
    version: str
    takes_missing: bool = True
    takes_negative: bool = True

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
        engine = connect_engine(self.target, self.url)
        engine.put(export)
        return engine.score(export, data.features.astype(np.float64))


@contextmanager
def running(name: str, server: Server) -> Iterator[RunningEngine]:
    """Start a server; gives what exports need to know of it."""
    with server:
        if isinstance(server, OpenSearchServer):
            yield RunningEngine(name, "opensearch", server.url, "3.8", takes_negative=False)
        elif isinstance(server, Solr9Server):
            yield RunningEngine(name, "solr", server.core, "9.2")
        elif isinstance(server, SolrServer):
            yield RunningEngine(name, "solr", server.core, "8.11", takes_missing=False)


def engines() -> Iterable[tuple[str, Server | None]]:
    """Yield each engine's name and its server; None if it is not installed."""
    yield "OpenSearch", OpenSearchServer() if installed("opensearch-ltr") else None
    yield "Solr 8", SolrServer() if installed("solr") else None
    yield "Solr 9", Solr9Server() if installed("solr-9") else None
