"""The studies of the papers: what they claim of exact things, and each one's small form."""

import json
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from podium.cli.study import STUDIES
from podium.data import write_letor
from podium.errors import ArgumentError
from podium.losses import ListMLE, ListNet, RankCosine
from podium.studies.bounds import INEQUALITIES, random_cases, ratios
from podium.studies.consistency import ORDERS, population_scores
from podium.studies.evidence import NUMBERED, evidence_page
from podium.studies.registry import study_called
from podium.studies.study import Setup, run_study
from podium.studies.verdicts import Claim, claims_table, read_claims
from tests.cli.run_podium import PODIUM, podium
from tests.rankers.made_up import made_up

PAGES = Path(__file__).parents[2] / "docs" / "studies"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a small MQ2008 and a small OHSUMED of LETOR 2.0."""
    found = tmp_path_factory.mktemp("data")
    data = made_up(80, 15)
    parts = [data.select(np.arange(part * 16, part * 16 + 16)) for part in range(5)]
    for place in ("MQ2008", "OHSUMED-2"):
        (found / "letor" / place).mkdir(parents=True)
    for number, part in enumerate(parts, start=1):
        write_letor(part, found / "letor" / "MQ2008" / f"S{number}.txt.gz")
        for name in ("training", "validation", "test"):
            write_letor(part, found / "letor" / "OHSUMED-2" / f"Fold{number}.{name}.txt.gz")
    return found


@pytest.mark.parametrize("m", [1, 2, 5, 30])
def test_the_counter_example_breaks_the_printed_bound(m: int) -> None:
    """One document below m others that score a hair more: m ln 2 against ln(1 + m)."""
    scores = np.concatenate([[0.0], 1e-9 * np.arange(1, m + 1)])
    found = ratios(scores, np.arange(m, -1.0, -1.0), [0, m + 1], 1)
    assert found["(18) as printed"][0] == pytest.approx(m * math.log(2) / math.log(1 + m))
    corrected = m * math.log(1 + m) / (m * math.log(1 + m))
    assert found["(18) corrected"][0] == pytest.approx(corrected)


def test_all_but_two_inequalities_hold() -> None:
    found = random_cases(12_000, 5)
    broken = {name for name in INEQUALITIES if found[name]["violations"]}
    assert broken == {"(17) logistic, natural", "(18) as printed"}
    assert found["(17) logistic, natural"]["worst"] <= 1 / math.log(2) + 1e-9


@pytest.mark.parametrize("kind", [ListMLE, RankCosine, ListNet])
def test_whole_orders_mislead_and_top_ones_do_not(kind: type) -> None:
    shares = np.array([0.4, 0.3, 0.3])
    assert population_scores(kind(), ORDERS, shares).argmax() == 1
    assert population_scores(kind(k=1), ORDERS, shares).argmax() == 0


def test_claims_are_read_as_they_were_written() -> None:
    claims = [
        Claim("Niu'12", "Table 1", "a", "b", "reproduced on a stand-in", "c; d"),
        Claim("ours", "End to end", "a", "—", "not run"),
    ]
    assert read_claims(f"# Page\n\n{claims_table(claims)}\nMore.\n") == claims
    assert read_claims("# Page\n") == []


def test_evidence_has_every_numbered_item_once(tmp_path: Path) -> None:
    claim = Claim("Lan'13", "Theorem 1", "a bound", "it holds", "reproduced")
    (tmp_path / "bounds.md").write_text(claims_table([claim]))
    _, *parts = evidence_page(tmp_path).split("\n## ")
    sections = {part.splitlines()[0]: part.splitlines() for part in parts}
    for paper, items in NUMBERED.items():
        for item in items:
            assert sum(line.startswith(f"| {item} |") for line in sections[paper]) == 1
    (own,) = [line for line in sections["Lan'13"] if "Theorem 1" in line]
    assert "**reproduced**" in own
    assert "[bounds](bounds.md)" in own


def test_the_evidence_of_the_site_is_that_of_its_pages() -> None:
    assert (PAGES / "index.md").read_text() == evidence_page(PAGES)
    assert {page.stem for page in PAGES.glob("*.md")} == {*STUDIES, "leaderboard", "index"}


def test_every_study_has_a_line_of_help() -> None:
    for name, about in STUDIES.items():
        assert study_called(name).name == name
        assert study_called(name).about == about


def test_a_study_that_needs_data_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="Name the folder"):
        run_study(study_called("toprank"), Setup(tmp_path))


# Each takes half a minute: two of them in CI.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name if name in ("bounds", "focused") else pytest.param(name, marks=pytest.mark.long)
        for name in STUDIES
    ],
)
def test_the_small_form_of_a_study_writes_its_page(name: str, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "docs" / f"{name}.md"
    command = ["study", name, folder, "--quick", "--results", tmp_path, "--page", page]
    done = podium(*command)
    assert done.returncode == 0, done.stderr.decode()
    text = page.read_text()
    assert f"podium study {name}" in text
    assert "numpy" in text
    assert "of processor time" in text
    assert read_claims(text)
    for picture in re.findall(r"\.\./images/([\w-]+\.svg)", text):
        assert (tmp_path / "images" / picture).exists()
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / name).rglob("*.json")}
    assert podium(*command).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_study_goes_on(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.md"
    command = [PODIUM, "study", "sufficiency", "--quick", "--results", tmp_path, "--page", page]
    process = subprocess.Popen(command, start_new_session=True)
    results = tmp_path / "sufficiency" / "quick"
    deadline = time.monotonic() + 600
    while len(list(results.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.read_bytes() for path in results.glob("*.json")}
    assert len(before) >= 3
    for content in before.values():
        json.loads(content)
    subprocess.run(command, check=True, timeout=900)
    assert {path: path.read_bytes() for path in before} == before
    assert "Figure 2" in page.read_text()
