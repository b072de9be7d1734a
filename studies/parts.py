"""The parts of a study: each is a task of a sweep, whose result is kept and not computed again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.cluster import Cluster, sweep
from podium.cluster.results_table import read_results
from podium.threads import thread_count
from studies.provenance import study_code


@dataclass(frozen=True)
class Part:
    """A piece of work.

    Attributes:
        name: Unique in its study.
        function: A module's function, so that another process can call it; returns a value that
            JSON can represent.
        arguments: Plain values. A part with other arguments than a stored result is run again.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    @property
    def task(self) -> dict[str, Any]:
        """Its parameters in the sweep; of a path the last component, so that data may move."""
        plain = json.dumps(self.arguments, default=lambda value: Path(value).name)
        return {"part": self.name, "arguments": json.loads(plain)}


@dataclass(frozen=True)
class PartResults:
    """The results of a study.

    Attributes:
        values: The value of each part by its name; parts that were not run are missing.
        seconds: The processor time of all parts together.
        codes: The versions of the code that computed them, each once.
    """

    values: dict[str, Any]
    seconds: float
    codes: tuple[str, ...]


def run_parts(
    parts: Sequence[Part],
    results: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    cluster: Cluster | None = None,
) -> None:
    """Run the parts that have no result yet.

    Args:
        parts: All parts of a study.
        results: The table that results are kept in.
        progress: Called with the number of finished parts and of all parts.
        cluster: Where to run them; by default in one process per core of this machine.
    """
    sweep(
        _RunPart({part.name: part for part in parts}),
        [part.task for part in parts],
        results=results,
        progress=None if progress is None else lambda state: progress(state.done, state.total),
        processes=thread_count(),
        cluster=cluster,
    )


@dataclass(frozen=True)
class _RunPart:
    """Runs one part, by its name."""

    parts: Mapping[str, Part]

    def __call__(self, part: str, arguments: Any) -> dict[str, Any]:
        """Run a part; its value is kept as JSON text, which may have NaN in it."""
        del arguments  # only to tell results apart: the part has them with whole paths
        start = time.process_time()
        value = self.parts[part].function(*self.parts[part].arguments)
        return {
            "value": json.dumps(value),
            "processor_seconds": time.process_time() - start,
            "code": study_code(),
        }


def read_parts(parts: Sequence[Part], results: Path) -> PartResults:
    """Read the results of all parts that have been run with their present arguments."""
    stored = read_results(results) if results.exists() else []
    finished = {
        result.parameters["part"]: result.values
        for result in stored
        if result.error is None and result.parameters in [part.task for part in parts]
    }
    return PartResults(
        {part.name: json.loads(finished[part.name]["value"]) for part in parts
         if part.name in finished},
        sum(values["processor_seconds"] for values in finished.values()),
        tuple(dict.fromkeys(values["code"] for values in finished.values())),
    )  # fmt: skip
