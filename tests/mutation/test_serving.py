"""A process that has loaded tests answers requests: what is reached, and what is noticed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.mutation.forks import Host, Tree
from tests.mutation.serving import Serve

MODULE = "src/podium/made_up.py"
TESTS = "tests/test_made_up.py"
SOURCE = """STEP = 1


def count(last):
    number = 0
    while number < last:
        number += STEP
    return number
"""
PASSING = f"{TESTS}::test_counts"
UNREACHED = f"{TESTS}::test_of_nothing"


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Any]]]:
    """Ask a host for the tests of a made-up project."""
    tmp_path = tmp_path_factory.mktemp("project")
    for file, text in {
        "src/podium/__init__.py": "",
        MODULE: SOURCE,
        TESTS: (
            "import pytest\n"
            "from podium.made_up import count\n"
            "def test_of_nothing(): pass\n"
            "def test_counts():\n"
            "    import this\n"
            "    assert count(3) == 3\n"
            "def test_fails(): assert count(3) == 4\n"
            "def test_is_skipped(): pytest.skip('as ever')\n"
            "@pytest.mark.slow\n"
            "def test_is_slow(): assert count(3) == 3\n"
        ),
        "tests/test_broken.py": "import nothing_of_that_name\n",
        "pytest.ini": "[pytest]\nmarkers = slow\n long\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    tree = Tree(tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in sys.modules if name.partition(".")[0] == "podium"]:
            patched.delitem(sys.modules, name)
        host = Host(tree, True, Serve(tree, False, ["tests"], "made_up"))

    def asked(**request: Any) -> dict[str, Any]:
        host.ask(**{"cpu": 20, "seconds": 200.0, **request})
        answer = host.answered(200.0)
        assert answer is not None
        if answer["how"] == "done":
            answer["result"] = json.loads(host.answer.read_text())
        return answer

    yield asked
    host.close()


def test_tests_that_do_not_pass_are_left_out_and_counted(ask: Callable[..., Any]) -> None:
    result = ask(mapped=TESTS)["result"]
    assert set(result["seconds"]) == {PASSING, UNREACHED}
    assert result["lines"] == {PASSING: {MODULE: [5, 6, 7, 8]}, UNREACHED: {}}
    assert "this" in result["loaded"]
    assert set(result["read"]) == {"src/podium/__init__.py", MODULE, TESTS}
    assert result["left"] == {
        "failed": [f"{TESTS}::test_fails"],
        "skipped": [f"{TESTS}::test_is_skipped"],
        "slow": [f"{TESTS}::test_is_slow"],
    }


def test_a_file_that_cannot_be_loaded_is_counted(ask: Callable[..., Any]) -> None:
    assert ask(mapped="tests/test_broken.py")["result"]["left"]["failed"] == [
        "tests/test_broken.py"
    ]


def test_what_tests_load_is_loaded_before_they_run(ask: Callable[..., Any]) -> None:
    assert ask(load=["this", "nothing_of_that_name"])["how"] == "loaded"
    assert "this" not in ask(mapped=TESTS)["result"]["loaded"]


def test_a_mutant_lives_for_one_request(ask: Callable[..., Any]) -> None:
    tests = {"tests": [UNREACHED, PASSING], "file": MODULE, "before": SOURCE}
    assert ask(**tests, after=SOURCE.replace("<", "<="))["result"] == PASSING
    assert ask(**tests, after=SOURCE.replace("number = 0", "number = False"))["result"] is None
    assert ask(tests=[PASSING])["result"] is None
    assert ask(tests=[f"{TESTS}::test_fails"])["result"] == f"{TESTS}::test_fails"


def test_a_loop_that_never_ends_is_stopped(ask: Callable[..., Any]) -> None:
    after = SOURCE.replace("number += STEP", "number -= STEP")
    request = {"tests": [PASSING], "file": MODULE, "before": SOURCE, "after": after}
    assert ask(**request, cpu=1)["how"] == "timeout"
    assert ask(**request, cpu=60, seconds=0.5)["how"] == "timeout"
    assert ask(tests=[PASSING])["how"] == "done"


def test_a_constant_needs_a_process_that_loads_it(ask: Callable[..., Any]) -> None:
    after = SOURCE.replace("STEP = 1", "STEP = 2")
    assert ask(tests=[PASSING], file=MODULE, before=SOURCE, after=after)["how"] == "fresh"
