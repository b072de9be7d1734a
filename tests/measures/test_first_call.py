"""Kernels are kept on disk: a second process does not compile them again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import numpy as np
from numba.core import event
from podium.measures import evaluate
random = np.random.default_rng(0)
labels, scores = random.integers(0, 5, 200), random.standard_normal(200)
with event.install_recorder("numba:compile") as compiled:
    evaluate("nDCG@10", labels, scores, group=np.full(10, 20))
print(len(compiled.buffer))
"""


def compilations(cache: Path) -> int:
    """In a process with an empty cache: the package's cache may hold compiled kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    )
    return int(done.stdout)


@pytest.mark.slow
def test_what_was_compiled_once_is_not_compiled_again(tmp_path: Path) -> None:
    """How soon the first figure comes in seconds is the evaluation benchmark's to say."""
    assert compilations(tmp_path) > 0
    assert compilations(tmp_path) == 0
