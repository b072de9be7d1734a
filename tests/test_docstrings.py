"""The examples in the docstrings of public names print what they show.

`make nightly` runs those of all other names, by ``pytest --doctest-modules src``.
"""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module

import pytest

from docs.hooks import PACKAGES


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_print_what_they_show(package: str) -> None:
    module = import_module(f"podium.{package}")
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    for name in module.__all__:
        public = getattr(module, name)
        if inspect.isclass(public) or inspect.isroutine(public):
            for example in doctest.DocTestFinder().find(public, f"podium.{package}.{name}"):
                runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
