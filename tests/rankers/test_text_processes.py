"""Text rankers in processes of their own: several that train together, and one that is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
import torch

from podium.errors import ArgumentError
from podium.rankers.communicator import Communicator
from podium.rankers.text_training import require_same
from tests.rankers.fit_text import fit_text
from tests.rankers.tiny_bert import save_tiny_bert

ROOT = Path(__file__).parents[2]
PARAMETERS = {
    "loss": "ListMLE(k=3)", "max_length": 48, "mini_batch_size": 2, "batch_queries": 3,
    "epochs": 3, "learning_rate": 3e-3,
}  # fmt: skip


def run(folder: Path, name: str, *, world: int = 1, killed_at: int | None = None, **changes: Any):
    """Fit in some processes; return how each ended."""
    content = {
        "checkpoint": str(folder / "bert"), "parameters": PARAMETERS | changes, "world": world,
        "killed_at": killed_at, "output": str(folder / name), "meeting": str(folder / "meeting"),
    }  # fmt: skip
    config = folder / f"{name}.json"
    config.write_text(json.dumps(content))
    command = [sys.executable, "-m", "tests.rankers.fit_text", str(config)]
    processes = [subprocess.Popen([*command, str(rank)], cwd=ROOT) for rank in range(world)]
    return [process.wait(timeout=900) for process in processes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("processes")
    save_tiny_bert(path / "bert")
    return path


@pytest.fixture(scope="module")
def alone(folder: Path) -> Any:
    """The scores after a fit in this process."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield fit_text(str(folder / "bert"), PARAMETERS)
    torch.set_num_threads(threads)


class Pair(Communicator):
    """One of two processes; the other one always sends the same."""

    size = 2

    def __init__(self, *sent: float) -> None:
        self.sent = np.array(sent)

    def all_reduce(self, values: Any) -> Any:
        return values + self.sent


def test_processes_continue_after_the_same_epoch() -> None:
    require_same(3, Pair(3, 9))
    for other in (0, 2, 4):
        with pytest.raises(ArgumentError, match="the processes have different checkpoints"):
            require_same(3, Pair(other, other**2))


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_train_the_model_of_one(folder: Path, alone: Any) -> None:
    assert run(folder, "two", world=2) == [0, 0]
    first, second = (np.load(folder / f"two-{rank}.npy") for rank in range(2))
    np.testing.assert_array_equal(first, second)
    # Seven queries, three per step: in the last step of an epoch a process has none.
    # No loss sees what is added to all scores, whose gradient is 0 but for rounding.
    np.testing.assert_allclose(np.diff(first), np.diff(alone), atol=1e-4 * np.ptp(alone))
    untrained = fit_text(str(folder / "bert"), {**PARAMETERS, "learning_rate": 1e-12})
    assert np.abs(untrained - alone).max() > 0.1 * np.ptp(alone)


@pytest.mark.slow
def test_a_killed_fit_is_continued(folder: Path, alone: Any) -> None:
    kept = str(folder / "kept")
    assert run(folder, "killed", killed_at=3, checkpoint_folder=kept) == [-signal.SIGKILL]
    assert not (folder / "killed-0.npy").exists()
    continued = fit_text(str(folder / "bert"), {**PARAMETERS, "checkpoint_folder": kept})
    np.testing.assert_array_equal(continued, alone)
