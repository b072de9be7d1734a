"""Spreading work over threads: order, bounds, errors, and processes that fork."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import PodiumError
from podium.threads import ordered_map, over_queries, thread_count


def test_the_number_of_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "7")
    assert thread_count() == 7
    monkeypatch.setenv("PODIUM_THREADS", "")
    assert thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", "²", "9" * 5000])
def test_numbers_of_threads_that_cannot_be(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", wrong)
    with pytest.raises(PodiumError, match="PODIUM_THREADS"):
        thread_count()


@given(st.lists(st.integers()), st.integers(1, 3))
def test_results_come_in_order(items: list[int], ahead: int) -> None:
    assert list(ordered_map(lambda item: item + 1, items, ahead=ahead)) == [
        item + 1 for item in items
    ]


def test_items_are_taken_only_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "2")
    taken = 0

    def endless() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = ordered_map(str, endless(), ahead=2)
    assert [next(results) for _ in range(10)] == [str(number) for number in range(1, 11)]
    assert taken <= 10 + 2 * 2 + 1
    results.close()  # type: ignore[attr-defined]


def test_the_first_error_is_raised_and_ends_the_work() -> None:
    def invert(number: int) -> float:
        return 1 / number

    found = []
    results = ordered_map(invert, [1, 2, 0, 4])
    with pytest.raises(ZeroDivisionError):
        found.extend(results)
    assert found == [1, 0.5]
    assert list(ordered_map(invert, [4])) == [0.25]


def test_an_error_of_the_items_comes_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "4")

    def two_and_an_error() -> Iterator[int]:
        yield 1
        yield 0
        raise OSError("cut short")

    found = []
    with pytest.raises(OSError, match="cut short"):
        found.extend(ordered_map(str, two_and_an_error()))
    assert found == ["1", "0"]
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(lambda number: 1 / number, two_and_an_error()))


@given(st.lists(st.integers(1, 3000), max_size=60), st.integers(1, 5))
def test_ranges_of_queries_cover_all_once(sizes: list[int], threads: int) -> None:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODIUM_THREADS", str(threads))
        ranges = over_queries(lambda first, last: (first, last), offsets)
    assert [query for first, last in ranges for query in range(first, last)] == list(
        range(len(sizes))
    )
    assert len(ranges) <= max(1, sum(sizes) // 4096)


def test_large_work_is_done_in_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "2")
    together = threading.Barrier(2, timeout=60)

    def meet(_first: int, _last: int) -> str:
        together.wait()  # two tasks are at work at once, or this fails
        return threading.current_thread().name

    names = over_queries(meet, np.arange(0, 8193 * 9, 8193))
    assert len(names) == 8
    assert all(name.startswith("podium") for name in names)


FORKING = """
import os, warnings
import numpy as np
from podium.threads import ordered_map
warnings.simplefilter("ignore", DeprecationWarning)
assert list(ordered_map(str, range(50))) == [str(number) for number in range(50)]
child = os.fork()
if child == 0:
    os._exit(list(ordered_map(str, range(50))) != [str(number) for number in range(50)])
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_has_threads_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
