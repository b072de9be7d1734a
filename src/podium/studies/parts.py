"""The parts of a study: each has a result of its own on disk, and is not done again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from podium.cluster import Cluster
from podium.studies.missing import run_missing
from podium.studies.provenance import study_code


@dataclass(frozen=True)
class Part:
    """A piece of work.

    Attributes:
        name: Unique in its study; its file is called so.
        function: Of a module, so that another process can call it; returns what JSON can hold.
        arguments: Plain values. A result that was made with others is made again.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def file(self, folder: Path) -> Path:
        """Where its result is, or will be."""
        return folder / f"{self.name}.json"


@dataclass(frozen=True)
class Done:
    """The results of a study.

    Attributes:
        values: What each part found, by its name; parts that were not run are missing.
        seconds: Of processor time, all parts together.
        codes: What code made them, each once.
    """

    values: dict[str, Any]
    seconds: float
    codes: tuple[str, ...]


def run_parts(
    parts: Sequence[Part],
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    cluster: Cluster | None = None,
) -> None:
    """Run the parts that have no result yet.

    Args:
        parts: All of a study's.
        folder: Where results are kept.
        progress: Told how many are done, of how many.
        cluster: Where to work; by default this machine.
    """
    waiting = {part.name: part for part in parts if _read(part, folder) is None}
    before = len(parts) - len(waiting)
    run_missing(
        partial(_content, waiting),
        {name: part.file(folder) for name, part in waiting.items()},
        progress=None if progress is None else lambda done, _: progress(before + done, len(parts)),
        cluster=cluster,
    )


def _content(parts: Mapping[str, Part], name: str) -> dict[str, Any]:
    """Do a part."""
    part = parts[name]
    start = time.process_time()
    value = part.function(*part.arguments)
    return {
        "arguments": _plain(part.arguments),
        "seconds": time.process_time() - start,
        "code": study_code(),
        "value": value,
    }


def read_parts(parts: Sequence[Part], folder: Path) -> Done:
    """The results of all parts that are done."""
    found = {part.name: _read(part, folder) for part in parts}
    there = {name: content for name, content in found.items() if content is not None}
    return Done(
        {name: content["value"] for name, content in there.items()},
        sum(content["seconds"] for content in there.values()),
        tuple(dict.fromkeys(content["code"] for content in there.values())),
    )


def _read(part: Part, folder: Path) -> Any:
    """What a part has written with the arguments that it has now, or None."""
    file = part.file(folder)
    if not file.exists():
        return None
    content = json.loads(file.read_bytes())
    return content if content["arguments"] == _plain(part.arguments) else None


def _plain(arguments: tuple[Any, ...]) -> Any:
    """Arguments as JSON gives them back; a path by its name, so that data may move."""
    return json.loads(json.dumps(arguments, default=lambda value: Path(value).name))
