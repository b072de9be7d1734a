"""The pieces of work whose results are not on disk yet, run as a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.cluster import Cluster, SweepProgress, sweep
from podium.data.files import open_write
from podium.threads import thread_count


@dataclass(frozen=True)
class _Piece:
    """A task of the sweep: its result as text, because studies have numbers that are none."""

    result: Callable[[str], Any]

    def __call__(self, piece: str) -> dict[str, str]:
        return {"text": json.dumps(self.result(piece))}


def run_missing(
    result: Callable[[str], Any],
    files: Mapping[str, Path],
    *,
    progress: Callable[[int, str | None], None] | None = None,
    cluster: Cluster | None = None,
) -> None:
    """Make the result of each piece that has no file; a file appears whole or not at all.

    Args:
        result: Gives the result of a piece by its name, as JSON can hold it; another process
            must be able to import it.
        files: Of each piece, by name, the file of its result.
        progress: Told how many are made, and which was the last.
        cluster: Where to work; by default in a process for each core of this machine.
    """

    def told(state: SweepProgress) -> None:
        last = None if state.last is None else str(state.last.parameters["piece"])
        if state.last is not None and last is not None and state.last.error is None:
            files[last].parent.mkdir(parents=True, exist_ok=True)
            with open_write(files[last], compress=False) as write:
                write(state.last.values["text"].encode())
        if progress is not None:
            progress(state.done, last)

    sweep(
        _Piece(result),
        [{"piece": name} for name in files],
        progress=told,
        processes=min(thread_count(), len(files)),
        cluster=cluster,
    )
