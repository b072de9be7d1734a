"""How long somebody new waits: the wheel, an empty environment, and the README, step by step.

    python -m benchmarks.newcomer

The wheel is built, then installed in an empty environment (what pip downloads counts too), and the
README's blocks are run there as its reader would, with nothing compiled before.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._report import Report, wants_quick

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Time each step; the first measures must come within five minutes of pip install."""
    report = Report("newcomer", wants_quick(__doc__), packages=["numba", "numpy", "pyarrow"])
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, str(ROOT)]
        report.note(f"build the wheel: {_seconds(build):.0f} s")
        python = Path(folder, "venv", "bin", "python")
        empty = _seconds([sys.executable, "-m", "venv", str(python.parents[1])])
        report.note(f"make an empty environment: {empty:.0f} s")
        (wheel,) = Path(folder).glob("*.whl")
        installed = _seconds([str(python), "-m", "pip", "install", "--quiet", str(wheel)])
        report.note(f"pip install: {installed:.0f} s")
        toured = _tour(python, report)
    # Whoever has run all of the README has measured, compared and judged.
    report.check(
        "from pip install to the first measures", installed + toured, 300, at_least=False, unit="s"
    )
    report.finish()


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _tour(python: Path, report: Report) -> float:
    """Run the README, tell what each block took, and return the seconds of all."""
    command = [str(python), str(ROOT / "tests" / "run_markdown.py"), str(ROOT / "README.md")]
    start = began = time.perf_counter()
    block = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tour:
        assert tour.stdout is not None
        for line in tour.stdout:
            if line.startswith("--- "):
                now = time.perf_counter()
                if block:
                    report.note(f"{block}: {now - began:.1f} s")
                block, began = line.strip("- \n"), now
    report.note(f"{block}: {time.perf_counter() - began:.1f} s")
    if tour.returncode:
        sys.exit(f"the README ended with {tour.returncode}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
