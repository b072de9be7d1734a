"""The studio behind a real socket, in a thread of the tests' process."""

from __future__ import annotations

from contextlib import AbstractContextManager

from podium.studio.app import create_app
from podium.studio.jobs.process import execute
from podium.studio.settings import Settings
from tests.app_thread import serving_app


def serving(
    settings: Settings, port: int | None = None, *, job_child: bool = False
) -> AbstractContextManager[str]:
    """Run a server, by default on a free port; gives its address.

    Jobs are done by a thread of the server: a child process takes seconds to start, and has tests
    of its own.
    """
    return serving_app(create_app(settings, None if job_child else execute), port)
