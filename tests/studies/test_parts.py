"""Parts of studies run once, and again only with other arguments."""

import itertools
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from podium.cluster.results_table import read_results
from podium.errors import PodiumError
from studies.parts import Part, read_parts, run_parts
from studies.provenance import study_code

CALLS: list[int] = []


def doubled(number: int) -> int:
    CALLS.append(number)
    return 2 * number


def failing() -> None:
    raise RuntimeError("on purpose")


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "1")
    CALLS.clear()


def test_a_part_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked before and after each part: each takes a second and a half.
    clock = SimpleNamespace(process_time=itertools.count(0.0, 1.5).__next__)
    monkeypatch.setattr("studies.parts.time", clock)
    parts = [Part("one", doubled, (1,)), Part("two", doubled, (2,))]
    reported: list[tuple[int, int]] = []
    run_parts(
        parts, tmp_path / "results.parquet", lambda done, total: reported.append((done, total))
    )
    assert reported == [(0, 2), (1, 2), (2, 2)]
    run_parts(parts, tmp_path / "results.parquet")
    assert CALLS == [1, 2]
    done = read_parts(parts, tmp_path / "results.parquet")
    assert done.values == {"one": 2, "two": 4}
    assert done.codes == (study_code(),)
    assert done.seconds == 1.5 + 1.5


def test_other_arguments_run_it_again(tmp_path: Path) -> None:
    run_parts([Part("one", doubled, (1,))], tmp_path / "results.parquet")
    changed = [Part("one", doubled, (5,))]
    assert read_parts(changed, tmp_path / "results.parquet").values == {}
    run_parts(changed, tmp_path / "results.parquet")
    assert read_parts(changed, tmp_path / "results.parquet").values == {"one": 10}


def test_data_may_move(tmp_path: Path) -> None:
    run_parts([Part("one", str, (Path("/here/data"),))], tmp_path / "results.parquet")
    moved = [Part("one", str, (Path("/there/data"),))]
    assert read_parts(moved, tmp_path / "results.parquet").values == {"one": "/here/data"}


def test_a_part_that_fails_has_no_result(tmp_path: Path) -> None:
    parts = [Part("one", doubled, (1,)), Part("bad", failing)]
    with pytest.raises(PodiumError, match="1 of 2 tasks failed"):
        run_parts(parts, tmp_path / "results.parquet")
    assert read_parts(parts, tmp_path / "results.parquet").values == {"one": 2}


def test_processes_give_what_one_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Part(f"part{number}", abs, (number,)) for number in range(-3, 3)]
    run_parts(parts, tmp_path / "one.parquet")
    monkeypatch.setenv("PODIUM_THREADS", "2")
    run_parts(parts, tmp_path / "two.parquet")
    one, two = (read_parts(parts, tmp_path / f"{each}.parquet").values for each in ("one", "two"))
    assert one == two == {f"part{number}": abs(number) for number in range(-3, 3)}


def test_values_that_are_not_numbers_come_back(tmp_path: Path) -> None:
    part = Part("nan", float, ("nan",))
    run_parts([part], tmp_path / "results.parquet")
    assert math.isnan(read_parts([part], tmp_path / "results.parquet").values["nan"])


def test_the_table_has_a_row_for_each_part(tmp_path: Path) -> None:
    run_parts([Part("one", doubled, (1,))], tmp_path / "results.parquet")
    (result,) = read_results(tmp_path / "results.parquet")
    assert result.parameters == {"part": "one", "arguments": [1]}
    assert result.values["value"] == "2"
    assert result.values["code"] == study_code()
