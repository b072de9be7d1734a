"""``import podium`` stays light: what it costs, and what it leaves unimported."""

import subprocess
import sys
from statistics import median

HEAVY = ("numba", "scipy", "typer", "rich", "sklearn", "torch", "lightgbm", "xgboost")
BOUND = 1.5
REPEATS = 9
ROUNDS = 3


def fresh(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def import_seconds(modules: str) -> float:
    return float(
        fresh(
            "from time import perf_counter; start = perf_counter();"
            f"import {modules}; print(perf_counter() - start)"
        )
    )


def test_import_costs_little_more_than_numpy_and_pyarrow() -> None:
    ratios = []
    # A busy machine slows some processes: alternating and medians even that out, and a bound
    # that holds in any round holds.
    for _ in range(ROUNDS):
        pairs = [
            (import_seconds("podium"), import_seconds("numpy, pyarrow")) for _ in range(REPEATS)
        ]
        ours, theirs = (median(seconds) for seconds in zip(*pairs, strict=True))
        ratios.append(ours / theirs)
        if ratios[-1] <= BOUND:
            return
    raise AssertionError(f"import podium took {ratios} times as long as numpy and pyarrow")


def test_import_leaves_heavy_packages_out() -> None:
    found = fresh(f"import podium, sys; print(*set({HEAVY}) & set(sys.modules))")
    assert found.split() == []
