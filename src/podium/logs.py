"""Logs as one JSON object per line, those of libraries included."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog
from structlog.typing import Processor


class _Lines:
    """A stream whose full disk, or closed pipe, costs lines but nothing else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def set_up_logs(level: str = "INFO", *, readable: bool = False) -> None:
    """Set up logging for this process.

    Args:
        level: The least that is written.
        readable: Whether a person reads it at a terminal.
    """
    renderer: Processor = (
        structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer()
    )
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # A line and its end in one write: several processes share the stream.
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Lines(sys.stderr))),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
