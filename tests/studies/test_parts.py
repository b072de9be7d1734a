"""Parts of studies: done once, whole or not at all, and again only when asked for otherwise."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from podium.errors import PodiumError
from podium.studies.parts import Part, read_parts, run_parts
from podium.studies.provenance import study_code

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


def test_a_part_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked before and after each part: each takes a second and a half.
    clock = SimpleNamespace(process_time=itertools.count(0.0, 1.5).__next__)
    monkeypatch.setattr("podium.studies.parts.time", clock)
    parts = [Part("one", doubled, (1,)), Part("two", doubled, (2,))]
    told: list[tuple[int, int]] = []
    run_parts(parts, tmp_path, lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]
    run_parts(parts, tmp_path)
    assert CALLS == [1, 2]
    done = read_parts(parts, tmp_path)
    assert done.values == {"one": 2, "two": 4}
    assert done.codes == (study_code(),)
    assert done.seconds == 1.5 + 1.5


def test_other_arguments_make_it_again(tmp_path: Path) -> None:
    run_parts([Part("one", doubled, (1,))], tmp_path)
    changed = [Part("one", doubled, (5,))]
    assert read_parts(changed, tmp_path).values == {}
    run_parts(changed, tmp_path)
    assert read_parts(changed, tmp_path).values == {"one": 10}


def test_data_may_move(tmp_path: Path) -> None:
    run_parts([Part("one", str, (Path("/here/data"),))], tmp_path)
    moved = [Part("one", str, (Path("/there/data"),))]
    assert read_parts(moved, tmp_path).values == {"one": "/here/data"}


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    parts = [Part("one", doubled, (1,)), Part("bad", failing)]
    with pytest.raises(PodiumError, match="1 of 2 tasks failed"):
        run_parts(parts, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["one.json"]
    assert json.loads((tmp_path / "one.json").read_bytes())["value"] == 2


def test_processes_give_what_one_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Part(f"part{number}", abs, (number,)) for number in range(-3, 3)]
    run_parts(parts, tmp_path / "one")
    monkeypatch.setenv("PODIUM_THREADS", "2")
    run_parts(parts, tmp_path / "two")
    one, two = (read_parts(parts, tmp_path / each).values for each in ("one", "two"))
    assert one == two == {f"part{number}": abs(number) for number in range(-3, 3)}
