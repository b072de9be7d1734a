"""A short run of the fuzzer, in a process of its own: a crash would end it, not the tests."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import TEXTS

ROOT = Path(__file__).parents[2]


def fuzz(inputs: int, folder: Path, **environment: str) -> str:
    options = ["--inputs", str(inputs), "--folder", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.fuzz_readers", *options],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_input_does_more_than_be_refused(tmp_path: Path) -> None:
    report = fuzz(3000, tmp_path)
    assert "3,000 inputs" in report
    assert " 0 failures" in report
    # Each of the readers reads some inputs and refuses others.
    table = [line for line in report.splitlines() if "refused" in line]
    assert len(table) == 15
    assert all(" read " in line for line in table)


@pytest.mark.long
def test_no_kernel_leaves_its_arrays(tmp_path: Path) -> None:
    # Numba's cache does not tell code with checks from code without: it gets its own.
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert " 0 failures" in fuzz(6000, tmp_path, **checked)


def test_the_same_seed_makes_the_same_inputs() -> None:
    one, other = ([mutated(Random(seed), TEXTS["letor"]) for seed in range(50)] for _ in range(2))
    assert one == other
    assert len(set(one)) > 40
