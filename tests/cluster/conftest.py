"""One cluster of three raylets for all tests of a process."""

from collections.abc import Iterator

import pytest

from benchmarks._raylets import Raylets
from podium.cluster import Cluster


@pytest.fixture(scope="session")
def raylets() -> Iterator[Raylets]:
    cluster = Raylets()
    with Cluster(cluster.address):
        yield cluster
    cluster.shutdown()


@pytest.fixture
def three(raylets: Raylets) -> Cluster:
    """The cluster with a worker for each raylet."""
    raylets.replace_killed()
    return Cluster(raylets.address, workers=3)
