"""Running search engines, one of each per session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.engines.engine_parsers import EngineParser
from tests.engines.install import PARSERS, installed
from tests.engines.servers import OpenSearchServer, Solr9Server, SolrServer


def _require(name: str) -> None:
    if installed(name):
        return
    if os.environ.get("CI"):
        pytest.fail(f"{name} is missing: .ci/run installs it with 'make engines'")
    pytest.skip(f"needs {name}: run 'make engines'")


@pytest.fixture(scope="session")
def opensearch() -> Iterator[OpenSearchServer]:
    """OpenSearch, with learning to rank if the plugin is installed."""
    _require("opensearch")
    with OpenSearchServer() as server:
        yield server


@pytest.fixture(scope="session")
def opensearch_ltr(request: pytest.FixtureRequest) -> OpenSearchServer:
    """OpenSearch with learning to rank."""
    _require("opensearch-ltr")
    server: OpenSearchServer = request.getfixturevalue("opensearch")
    return server


@pytest.fixture(scope="session")
def solr() -> Iterator[SolrServer]:
    """Solr with learning to rank and one core."""
    _require("solr")
    with SolrServer() as server:
        yield server


@pytest.fixture(scope="session")
def solr_9() -> Iterator[Solr9Server]:
    """Solr 9 with learning to rank and one core."""
    _require("solr-9")
    with Solr9Server() as server:
        yield server


@pytest.fixture(scope="session", params=[name for name in PARSERS if name != "vespa"])
def elasticsearch_parser(request: pytest.FixtureRequest) -> Iterator[EngineParser]:
    """The classes of the oldest and of the newest version of Elasticsearch that is tested."""
    _require(request.param)
    with EngineParser(request.param) as parser:
        yield parser


@pytest.fixture(scope="session")
def vespa_parser() -> Iterator[EngineParser]:
    """The classes of Vespa that read applications and evaluate ranking expressions."""
    _require("vespa")
    with EngineParser("vespa") as parser:
        yield parser
