"""Logs as one JSON object a line, for whatever gathers them."""

from __future__ import annotations

import logging
import sys

import structlog


def set_up_logs(level: str = "INFO", *, readable: bool = False) -> None:
    """Set up logging for this process.

    Args:
        level: The least that is written.
        readable: Whether a person reads it at a terminal.
    """
    renderer = structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
