"""Every public name is documented where it is defined, and every function with an example."""

import inspect
from importlib import import_module
from types import FunctionType

import pytest

ROOMS = [
    "data",
    "measures",
    "losses",
    "aggregation",
    "judging",
    "judging.agreement",
    "judging.algorithms",
    "utility",
    "rankers",
    "rankers.models",
]


@pytest.mark.parametrize("room", ROOMS)
def test_public_functions_have_an_example(room: str) -> None:
    module = import_module(f"podium.{room}")
    functions = [name for name in module.__all__ if isinstance(getattr(module, name), FunctionType)]
    without = [
        name for name in functions if ">>> " not in (inspect.getdoc(getattr(module, name)) or "")
    ]
    assert without == []


@pytest.mark.parametrize("room", ROOMS)
def test_public_classes_are_documented(room: str) -> None:
    module = import_module(f"podium.{room}")
    classes = [name for name in module.__all__ if isinstance(getattr(module, name), type)]
    assert [name for name in classes if not getattr(module, name).__doc__] == []
