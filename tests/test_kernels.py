"""Compiled loops: cached on disk where they can be, working where they cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from podium import kernels
from podium.kernels.cache import _ingredients_digest

CALLER = """
import numpy as np
import parts
from parts import ROUNDS, Step, doubled
from podium.kernels import kernel

@kernel
def total(values):
    step = Step(0.5, 0.25)
    result = 0.0
    for _ in range(ROUNDS):
        for value in values:
            result += below(value) + step.rise
    return result

@kernel
def below(value):  # known only after the function that calls it
    return doubled(value) + parts.more(value)

if __name__ == "__main__":
    print(total(np.arange(3.0)), sum(total.compiled.stats.cache_hits.values()))
"""
PARTS = """
from typing import NamedTuple
from podium.kernels import inner, kernel

ROUNDS = 1

class Step(NamedTuple):
    rise: float
    fall: float

@kernel
def doubled(value):
    return 2.0 * value

@inner
def more(value):
    return 10.0 * value
"""
LOOPS = """
import numpy as np
from podium.kernels import fast_kernel, kernel

@kernel
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result

@fast_kernel
def fast_total(values):
    result = 0.0
    for value in values:
        result += value
    return result

if __name__ == "__main__":
    totals = total(np.arange(5.0)), fast_total(np.arange(5.0))
    print(*totals, sum(total.compiled.stats.cache_hits.values()))
"""


def run(folder: Path, *before: str, **environment: str) -> str:
    done = subprocess.run(
        [*before, sys.executable, folder / "loops.py"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(LOOPS)
    assert run(tmp_path) == "10.0 10.0 0\n"
    assert list((tmp_path / "__pycache__").glob("loops.total*.nbc"))
    assert run(tmp_path) == "10.0 10.0 1\n"


def test_nowhere_to_keep_a_cache(tmp_path: Path) -> None:
    # What a container with a read-only file system looks like. Root is let through by a
    # capability that has to be taken away first.
    before = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root may write everywhere, and setpriv is not here to change that")
        before = [setpriv, "--bounding-set=-dac_override"]
    (tmp_path / "loops.py").write_text(LOOPS)
    tmp_path.chmod(0o555)
    nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    assert run(tmp_path, *before, **nowhere) == "10.0 10.0 0\n"
    tmp_path.chmod(0o755)
    assert not (tmp_path / "__pycache__").exists()


LONG = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize(
    ("before", "after", "total"),
    [
        ("ROUNDS = 1", "ROUNDS = 2", 2 * 3 * (2 + 10 + 0.5)),
        pytest.param("2.0 * value", "3.0 * value", 3 * (3 + 10 + 0.5), marks=LONG),
        pytest.param("10.0 * value", "20.0 * value", 3 * (2 + 20 + 0.5), marks=LONG),
        # Two fields of one type change places: the type of the arguments does not tell.
        ("rise: float\n    fall: float", "fall: float\n    rise: float", 3 * (2 + 10 + 0.25)),
    ],
)
def test_compiled_again_when_another_file_changes(
    tmp_path: Path, before: str, after: str, total: float
) -> None:
    (tmp_path / "loops.py").write_text(CALLER)
    (tmp_path / "parts.py").write_text(PARTS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    here = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    first = 3 * (2 + 10 + 0.5)
    assert run(tmp_path, **here) == f"{first} 0\n"
    assert run(tmp_path, **here) == f"{first} 1\n"
    (tmp_path / "parts.py").write_text(PARTS.replace(before, after))
    assert run(tmp_path, **here) == f"{total} 0\n"
    assert run(tmp_path, **here) == f"{total} 1\n"


def test_the_key_of_a_notebooks_code_holds_what_it_calls() -> None:
    def digest(operation: str) -> str:
        cell = f"def helper(x):\n    return x {operation} 2.0\n"
        names: dict[str, Any] = {}
        exec(compile(cell, "/tmp/ipykernel_1/2.py", "exec"), names)
        names["helper"] = numba.njit(names["helper"])
        caller = "def caller(x):\n    return helper(x)\n"
        exec(compile(caller, "/tmp/ipykernel_1/3.py", "exec"), names)
        return _ingredients_digest(names["caller"])

    assert digest("*") == digest("*")
    assert digest("*") != digest("+")


def test_a_lazy_kernel_is_compiled_once_it_has_read_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "SMALL", 100)

    @kernels.inner
    def doubled(value: float) -> float:
        return 2.0 * value

    def total(values: kernels.Doubles) -> float:
        result = 0.0
        for value in values:
            result += doubled(value)
        return result

    lazy: Any = kernels.lazy_kernel(total)
    for values, signatures in [(np.ones(10), 0), (np.ones(2), 0), (np.ones(1), 1), (np.ones(0), 1)]:
        assert lazy(values) == 2.0 * len(values)
        assert len(lazy.compiled.signatures) == signatures
    eager: Any = kernels.kernel(total)
    assert eager(np.ones(1)) == 2.0
    assert len(eager.compiled.signatures) == 1
