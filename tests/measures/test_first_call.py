"""Kernels are kept on disk: a second process does not compile them again. Few rows need none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fresh_interpreter import loaded

CODE = """
import numpy as np
from numba.core import event
from podium import kernels
from podium.measures import evaluate
kernels.SMALL = -1
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


def test_a_small_file_is_evaluated_without_numba(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    (tmp_path / "run").write_text("1 Q0 b 1 2.0 x\n1 Q0 a 2 2.0 x\n")
    code = f"""
import os; os.chdir({str(tmp_path)!r})
from podium.measures import evaluate
assert evaluate(["nDCG@10", "AP", "RR"], "qrels", "run").means["RR"] == 0.75"""
    assert not {"numba", "scipy.special", "scipy.stats"} & loaded(code)
