"""Settings that all tests share."""

import os
from collections import Counter

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from podium import kernels

# It registers a ranker, and looking for examples in it would load it under a second name.
collect_ignore = ["rankers/one_feature.py"]

# Tests are of compiled code, however small their arrays; some compare it with plain Python.
kernels.SMALL = -1

# The first call of a kernel compiles it, which takes seconds: no example has a deadline.
settings.register_profile("podium", deadline=None)
# CI draws the same few examples every time: a change is judged by what it changed. New examples,
# and more, are drawn wherever a person runs the tests, and every night.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("ci" if os.environ.get("CI") else "podium")


# What the tests of a folder share takes long to start: search engines, a Ray cluster.
_ONE_PROCESS = ("tests/engines/", "tests/cluster/")


class FileScheduling(LoadScopeScheduling):
    """Gives a file's tests to one process, so that what the file sets up is set up once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in _ONE_PROCESS if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    """Spread tests over processes in the order in which they were collected."""
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first: what comes last should end in all processes at once."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests ran in a search engine: `.ci/run` ends with it."""
    counts: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "skipped"):
        reports = terminalreporter.getreports(outcome)
        counts[outcome] = sum(each.nodeid.startswith("tests/engines/") for each in reports)
    if counts.total():
        ran = counts["passed"] + counts["failed"]
        terminalreporter.write_line(f"engine tests: {ran} ran, {counts['skipped']} skipped")
