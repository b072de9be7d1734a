"""Fusions against OpenSearch's documented arithmetic, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from podium.hybrid.fusion import fuse
from tests.hybrid.fusion_cases import cases, documented


def differing(count: int) -> list[str]:
    """The fusions of generated cases in which a document scores otherwise."""
    return [
        str(fusion)
        for fusion, votes in cases(count)
        if not np.array_equal(fuse(votes, [0, len(votes)], fusion), documented(fusion, votes))
    ]


def test_scores_are_opensearchs() -> None:
    assert differing(300) == []


@pytest.mark.slow
def test_scores_of_many_lists_are_opensearchs() -> None:
    assert differing(10_000) == []
