"""Typed rows have the columns of their tables, in order."""

from __future__ import annotations

import pytest

from podium.studio.store import rows, tables


@pytest.mark.parametrize(
    "name", ["Project", "ProjectQuery", "Lease", "Job", "User", "Invitation", "Report"]
)
def test_a_row_has_the_columns_of_its_table_in_order(name):
    columns = getattr(tables, name).__table__.columns
    assert list(getattr(rows, f"{name}Row")._fields) == columns.keys()
