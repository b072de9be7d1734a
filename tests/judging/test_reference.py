"""The reference pages name everything that is public, in an order for readers."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "module"),
    [
        ("judging.md", "podium.judging"),
        ("judging.md", "podium.judging.algorithms"),
        ("agreement.md", "podium.judging.agreement"),
    ],
)
def test_every_public_name_is_on_its_page(page, module):
    text = (PAGES / page).read_text(encoding="utf-8")
    block = re.search(rf"^::: {re.escape(module)}\n((?: .*\n)+)", text, re.M)[1]
    # Classes of results that functions return are on the page, too.
    assert set(import_module(module).__all__) <= set(re.findall(r"- (\w+)", block))
