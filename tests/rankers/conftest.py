"""What tests of text rankers share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rankers.tiny_bert import save_tiny_bert


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT, which no test changes."""
    return save_tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads cost more than they save for a model this small."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
