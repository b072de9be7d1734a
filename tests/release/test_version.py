"""The version is the same wherever it is repeated."""

import re
from pathlib import Path

import podium

ROOT = Path(__file__).parents[2]


def test_the_version_is_repeated_as_it_is() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == podium.__version__  # type: ignore[index]
    for chart in ("podium-studio", "podium-serving"):
        content = (ROOT / "deploy/helm" / chart / "Chart.yaml").read_text()
        for name in ("version", "appVersion"):
            quoted = re.search(rf'^{name}: "?([^"\n]+)"?$', content, re.MULTILINE)
            assert quoted is not None
            assert quoted[1] == podium.__version__


def test_the_changelog_has_a_dated_section_of_the_version() -> None:
    sections = re.findall(
        r"^## \[([^]]+)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert sections[0] == ("Unreleased", "")
    dates = {name: re.fullmatch(r" - \d{4}-\d{2}-\d{2}", date) for name, date in sections[1:]}
    assert dates[podium.__version__] is not None
