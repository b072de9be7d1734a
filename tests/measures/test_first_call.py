"""Kernels are kept on disk: a second process does not compile them again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import time  # of the processor, since the machine may be busy; nothing here waits
import numpy as np
from podium.measures import evaluate
random = np.random.default_rng(0)
labels, scores = random.integers(0, 5, 20_000), random.standard_normal(20_000)
evaluate("nDCG@10", labels=labels, scores=scores, group=np.full(1000, 20))
print(time.process_time())
"""


def seconds(cache: Path) -> float:
    """Of a process with a cache of its own: the package's own may hold compiled kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    )
    return float(done.stdout)


@pytest.mark.slow
def test_what_was_compiled_once_is_not_compiled_again(tmp_path: Path) -> None:
    """How soon the first figure comes in seconds is the evaluation benchmark's to say."""
    cold = seconds(tmp_path)
    assert min(seconds(tmp_path) for _ in range(2)) < 0.7 * cold
