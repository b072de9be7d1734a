"""The studies of the papers: what they claim of exact things, and each one's small form."""

import ast
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from podium.cluster.results_table import read_results
from podium.data import write_letor
from podium.errors import ArgumentError
from podium.losses import ListMLE, ListNet, RankCosine
from studies import focused
from studies.__main__ import STUDIES
from studies.bounds import INEQUALITIES, random_cases, ratios
from studies.claims import Claim, claims_table, read_claims
from studies.consistency import ORDERS, population_scores
from studies.evidence import NUMBERED, evidence_page
from studies.leaderboard import CHOSEN_BY
from studies.leaderboard_models import ENTRIES, Truth
from studies.standings import Row, Standing
from studies.study import Setup, run_study
from tests.rankers.made_up import made_up

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "studies"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a small MQ2008 and a small OHSUMED of LETOR 2.0."""
    root = tmp_path_factory.mktemp("data")
    data = made_up(80, 15)
    parts = [data.select(np.arange(part * 16, part * 16 + 16)) for part in range(5)]
    for collection in ("MQ2008", "OHSUMED-2"):
        (root / "letor" / collection).mkdir(parents=True)
    for number, part in enumerate(parts, start=1):
        write_letor(part, root / "letor" / "MQ2008" / f"S{number}.txt.gz")
        for name in ("training", "validation", "test"):
            write_letor(part, root / "letor" / "OHSUMED-2" / f"Fold{number}.{name}.txt.gz")
    return root


@pytest.mark.parametrize("m", [1, 2, 5, 30])
def test_the_counter_example_breaks_the_printed_bound(m: int) -> None:
    """One document below m others that score a hair more: m ln 2 against ln(1 + m)."""
    scores = np.concatenate([[0.0], 1e-9 * np.arange(1, m + 1)])
    measured = ratios(scores, np.arange(m, -1.0, -1.0), [0, m + 1], 1)
    assert measured["(18) as printed"][0] == pytest.approx(m * math.log(2) / math.log(1 + m))
    corrected = m * math.log(1 + m) / (m * math.log(1 + m))
    assert measured["(18) corrected"][0] == pytest.approx(corrected)


def test_all_but_two_inequalities_hold() -> None:
    cases = random_cases(12_000, 5)
    broken = {name for name in INEQUALITIES if cases[name]["violations"]}
    assert broken == {"(17) logistic, natural", "(18) as printed"}
    assert cases["(17) logistic, natural"]["worst"] <= 1 / math.log(2) + 1e-9


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


def test_graded_truth_alone_decides_nothing_about_focused_rank() -> None:
    def standing(truth: Truth) -> Standing:
        values = {CHOSEN_BY[truth]: np.linspace(0, 1, 5)}
        return Standing("MQ2007", truth, {name: Row(name, values, 0.5, 1, ()) for name in ENTRIES})

    for check in (focused._curve, focused._comparison):
        assert check("", [standing("graded")], "").verdict == "not run"
        assert check("", [standing("graded"), standing("top-k")], "").verdict == "not reproduced"


def run_studies(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "studies", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)


def test_the_list_has_every_study() -> None:
    done = run_studies("list")
    assert done.returncode == 0, done.stderr
    first = [re.split(r"[│┃]", line)[1].strip() for line in done.stdout.splitlines() if "│" in line]
    assert [name for name in first if name] == [*STUDIES, "leaderboard"]


def test_an_error_is_one_line(tmp_path: Path) -> None:
    done = run_studies("leaderboard", tmp_path, "--results", tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "there is no data set in this folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_studies_use_no_private_names() -> None:
    private = []
    for file in sorted((ROOT / "studies").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("podium"):
                names = [*str(node.module).split("."), *(each.name for each in node.names)]
                private += [f"{file.name}: {name}" for name in names if name.startswith("_")]
    assert private == []


def test_a_study_that_needs_data_says_so(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="Name the folder"):
        run_study(STUDIES["toprank"], Setup(tmp_path))


# Each takes half a minute or more: CI has the leaderboard's, in test_leaderboard.py.
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", STUDIES)
def test_the_small_form_of_a_study_writes_its_page(name: str, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "docs" / f"{name}.md"
    command = [name, folder, "--quick", "--results", tmp_path, "--page", page]
    done = run_studies(*command)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert f"python -m studies {name}" in text
    assert "numpy" in text
    assert "of processor time" in text
    if name == "clicks":  # no paper's
        assert "| MQ2008, pbm, random, 10 searches |" in text
    elif name == "hybrid":
        assert "RRF 60" in text or "Nothing has run yet" in text
    elif name == "defaults":
        assert "| SquaredError(), 15 leaves, rate 0.05 |" in text
    else:
        assert read_claims(text)
    for picture in re.findall(r"\.\./images/([\w-]+\.svg)", text):
        assert (tmp_path / "images" / picture).exists()
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")}
    assert before
    assert run_studies(*command).returncode == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_study_continues(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "page.md"
    command = [sys.executable, "-m", "studies", "sufficiency", "--quick"]
    command += ["--results", str(tmp_path), "--page", str(page)]
    process = subprocess.Popen(command, start_new_session=True, cwd=ROOT)
    file = tmp_path / "sufficiency" / "quick" / "results.parquet"
    deadline = time.monotonic() + 600
    while len(before := read_results(file) if file.exists() else []) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, timeout=900, cwd=ROOT)
    assert read_results(file)[: len(before)] == before
    assert "Figure 2" in page.read_text()
