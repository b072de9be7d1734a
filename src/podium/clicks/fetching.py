"""UBI's indices of a running OpenSearch as JSON lines, page by page, which goes on after a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Container
from pathlib import Path
from typing import Any, Protocol

from podium.data.atomic import atomic_write
from podium.data.files import Reporter, writing
from podium.data.json_lines import json_line
from podium.errors import DataError

INDICES = ("ubi_queries", "ubi_events")
_PAGE = 1000
_ALIVE = "10m"


class EngineRequests(Protocol):
    """What sends requests to an engine, as ``podium.export.live`` has it."""

    def request(
        self, method: str, path: str, content: Any = None, *, allowed: Container[int] = ()
    ) -> tuple[int, Any]:
        """Send a request; return the status and the parsed answer."""


def fetch_ubi(
    client: EngineRequests,
    folder: str | os.PathLike[str],
    *,
    indices: tuple[str, str] = INDICES,
    page: int = _PAGE,
    progress: Reporter | None = None,
) -> Path:
    """Copy UBI's indices to a file of JSON lines in a folder.

    Each page is on the disk before the next is asked for. After a kill, the same call goes on after
    the last page. What is added to an index meanwhile is not seen: pages are of a point in time.

    Args:
        client: The engine: ``podium.export.live.http_client.EngineClient``.
        folder: Where the file is written, ``fetched.ndjson``.
        indices: The names of the indices of queries and of events.
        page: Records per request.
        progress: Called with the records so far, and None.

    Example:
        >>> from podium.export.live.http_client import EngineClient
        >>> with EngineClient("http://localhost:9200", "OpenSearch") as client:  # doctest: +SKIP
        ...     fetch_ubi(client, "ubi")
    """
    with writing(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
    output, state_file = Path(folder) / "fetched.ndjson", Path(folder) / "fetched.json"
    state: dict[str, Any] = {"bytes": 0, "records": 0, "done": [], "after": None, "pit": None}
    if state_file.exists() and output.exists():
        state = json.loads(state_file.read_bytes())
    with writing(output), output.open("ab") as stream:
        stream.truncate(state["bytes"])  # a page that a kill left unfinished
        for index in indices:
            if index in state["done"]:
                continue
            while True:
                hits = _page(client, index, state, page)
                for hit in hits:
                    stream.write(json_line(hit["_source"]))
                stream.flush()
                os.fsync(stream.fileno())
                state["bytes"], state["records"] = stream.tell(), state["records"] + len(hits)
                if hits:
                    state["after"] = hits[-1]["sort"]
                else:
                    closed = {"pit_id": [state["pit"]]}
                    client.request("DELETE", "_search/point_in_time", closed, allowed=(400, 404))
                    state |= {"after": None, "pit": None, "done": [*state["done"], index]}
                with atomic_write(state_file) as file:
                    file.write(json_line(state))
                if progress is not None:
                    progress(state["records"], None)
                if not hits:
                    break
    return output


def _page(
    client: EngineRequests, index: str, state: dict[str, Any], page: int
) -> list[dict[str, Any]]:
    for _ in range(2):
        if state["pit"] is None:
            path = f"{index}/_search/point_in_time?keep_alive={_ALIVE}"
            _, answer = client.request("POST", path)
            state["pit"] = _value(answer, "pit_id")
        content: dict[str, Any] = {
            "size": page,
            "pit": {"id": state["pit"], "keep_alive": _ALIVE},
            "sort": [{"timestamp": {"order": "asc", "missing": "_last"}}, {"_id": "asc"}],
        }
        if state["after"] is not None:
            content["search_after"] = state["after"]
        status, answer = client.request("POST", "_search", content, allowed=(404,))
        if status == 404:  # the point in time is over: the order of pages stays the same
            state["pit"] = None
            continue
        hits: list[dict[str, Any]] = _value(_value(answer, "hits"), "hits")
        return hits
    raise DataError("OpenSearch has no point in time", hint="Try again, or import files.")


def _value(answer: Any, name: str) -> Any:
    if not isinstance(answer, dict) or name not in answer:
        raise DataError(
            f"the engine's answer has no {name!r}", hint="Check that it is an OpenSearch with UBI."
        )
    return answer[name]
