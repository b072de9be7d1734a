"""ranx in a process of its own, as plain Python: compiled, its first figure takes minutes.

Without Numba's compiler ranx runs the same code, but for equal scores, which NumPy sorts otherwise.
Podium's own kernels need the compiler, hence the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

Runs = dict[str, dict[str, float]]


class Ranx:
    """Answers until it is closed.

    Args:
        compiled: Run ranx as its users do.
    """

    def __init__(self, *, compiled: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=os.environ | {"NUMBA_DISABLE_JIT": "0" if compiled else "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def evaluate(self, qrels: Runs, run: Runs, names: list[str]) -> dict[str, dict[str, float]]:
        """The value of each measure for each query."""
        return self._ask("evaluate", [qrels, run, names])

    def fuse(self, runs: list[Runs], method: str) -> Runs:
        """Several runs as one."""
        return self._ask("fuse", [runs, method])

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, what: str, arguments: list[Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, arguments], default=float) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _evaluate(qrels: Runs, run: Runs, names: list[str]) -> Any:
    import ranx

    judged = {query: {d: int(grade) for d, grade in _padded(q)} for query, q in qrels.items()}
    scored = ranx.Run({query: dict(_padded(documents)) for query, documents in run.items()})
    ranx.evaluate(ranx.Qrels(judged), scored, names)
    return scored.scores


def _padded(documents: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Ids of one length, in the same order: ranx compiles again, for a minute, for each length."""
    return ((document.ljust(40), value) for document, value in documents.items())


def _fuse(runs: list[Runs], method: str) -> Any:
    import ranx

    return ranx.fuse([ranx.Run(run) for run in runs], method=method, norm=None).to_dict()


def main() -> None:
    """Answer lines of JSON."""
    answers = {"evaluate": _evaluate, "fuse": _fuse}
    for line in sys.stdin:
        what, arguments = json.loads(line)
        print(json.dumps(answers[what](*arguments), default=float), flush=True)


if __name__ == "__main__":
    main()
