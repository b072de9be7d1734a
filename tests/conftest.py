"""Settings that all tests share."""

import os
from collections import Counter

import pytest
from hypothesis import settings

# It registers a ranker, and looking for examples in it would load it under a second name.
collect_ignore = ["rankers/one_feature.py"]

# The first call of a kernel compiles it, which takes seconds: no example has a deadline.
settings.register_profile("podium", deadline=None)
# CI draws the same few examples every time: a change is judged by what it changed. New examples,
# and more, are drawn wherever a person runs the tests, and every night.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("ci" if os.environ.get("CI") else "podium")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a file's tests to one process, so that what the file sets up is set up once.

    Files that share an engine or a cluster name a group of their own.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests ran in a search engine: `.ci/run` ends with it."""
    counts: Counter[str] = Counter()
    for outcome in ("passed", "failed", "error", "skipped"):
        reports = terminalreporter.getreports(outcome)
        counts[outcome] = sum(each.nodeid.startswith("tests/engines/") for each in reports)
    if counts.total():
        ran = counts["passed"] + counts["failed"]
        terminalreporter.write_line(f"engine tests: {ran} ran, {counts['skipped']} skipped")
