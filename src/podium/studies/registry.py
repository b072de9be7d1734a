"""Every study by its name."""

from __future__ import annotations

from importlib import import_module

from podium.studies.study import Study


def study_called(name: str) -> Study:
    """A study by its name, which is that of its module.

    Example:
        >>> study_called("bounds").title
        'Bounds of 1 - NDCG by losses'
    """
    study: Study = import_module(f"podium.studies.{name.replace('-', '_')}").STUDY
    return study
