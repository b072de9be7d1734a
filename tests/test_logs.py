"""Logs: what several processes write to one stream stays one object per line."""

import io
import json
import logging
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import structlog

from podium.logs import set_up_logs


def test_a_line_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr("sys.stderr", Stream())
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        set_up_logs()
        structlog.get_logger("podium").debug("below the level")
        structlog.get_logger("podium").info("ready", workers=2)
        logging.getLogger("library").info("libraries report warnings alone")
        logging.getLogger("library").warning("slow")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    assert [text[-1] for text in written] == ["\n", "\n"]
    lines = [json.loads(text) for text in written]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("ready", "info"),
        ("slow", "warning"),
    ]
    assert lines[1]["logger"] == "library"
    for line in lines:
        assert datetime.fromisoformat(line["timestamp"]).utcoffset() == timedelta(0)


def test_a_full_disk_costs_lines_and_nothing_else() -> None:
    code = (
        "import structlog; from podium.logs import set_up_logs; set_up_logs()\n"
        "for n in range(1000): structlog.get_logger('podium.serving').error('x' * 100)\n"
        "print('goes on', flush=True)"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=full, text=True
        )
    assert done.stdout == "goes on\n"
