"""What was logged for training is what the engine ranks by: no skew, query by query."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks._no_skew import CACM, Skew, measure_skew, read_cacm
from tests.features.collection import Collection, collection

pytestmark = pytest.mark.slow

ENGINES = [("opensearch", "opensearch_ltr"), ("solr", "solr_9")]


def check(skew: Skew, queries: int) -> None:
    assert (skew.queries, skew.engine_tops, skew.served_tops, skew.changed_values) == (
        queries,
        0,
        0,
        0,
    )
    assert skew.largest <= skew.bound < 1e-3
    assert (skew.checked.holds, skew.faulty.holds) == (True, False)


def measured(engine: tuple[str, str], request, content: Collection, folder: Path) -> Skew:
    return measure_skew(engine[0], request.getfixturevalue(engine[1]), content, folder)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine[0])
def test_engine_service_and_ranker_agree_on_50_queries(engine, request, tmp_path):
    check(measured(engine, request, collection(300, 50), tmp_path), 50)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine[0])
def test_engine_service_and_ranker_agree_on_1000_queries(engine, request, tmp_path):
    """As many documents as MQ2008 has rows."""
    check(measured(engine, request, collection(15_211, 1_000), tmp_path), 1_000)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine[0])
def test_engine_service_and_ranker_agree_on_cacm(engine, request, tmp_path):
    if not CACM.is_dir():
        pytest.skip("needs CACM in ../shared/data/text/cacm")
    check(measured(engine, request, read_cacm(CACM), tmp_path), 64)
