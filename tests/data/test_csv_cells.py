"""Cells that spreadsheets could take for formulas, and their way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data.csv_cells import harmless_cell, restored_cell


@pytest.mark.parametrize(
    "cell",
    ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", " =1", "\ufeff=1", "\u200b=1",
     "\u200e\u2060=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20x", "\u200b\uff1d1", "\xa0=1",
     "\0=1", "\u2066+1"],
)  # fmt: skip
def test_formulas_get_an_apostrophe(cell):
    assert harmless_cell(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["", "shoes", "1=1", "'90s", "a\n=1", "(1)", " ", "é=1"])
def test_other_cells_stay(cell):
    assert harmless_cell(cell) == cell


@given(st.text())
def test_what_is_written_can_be_read_back(text):
    written = harmless_cell(text)
    assert restored_cell(written) == text or text.startswith("'")
