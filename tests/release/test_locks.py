"""Lock files have what pyproject.toml asks for."""

import re
import tomllib

import pytest

from tests.release.locks import EXTRAS, LOCKS, ROOT, problems, requirements

PROJECT = {
    "name": "shop",
    "dependencies": ["numpy>=2", "rich>=13,<15"],
    "optional-dependencies": {
        "web": ["shop[models]", "uvicorn[standard]>=0.30"],
        "models": ["httpx>=0.27"],
    },
}
GOOD = "".join(
    f"{pin} \\\n    --hash=sha256:{'0' * 64}\n"
    for pin in (
        "numpy==2.1.0",
        "rich==14.0",
        "uvicorn==0.31",
        "httpx==0.28.1 ; python_version > '3'",
    )
)


@pytest.mark.parametrize("name", EXTRAS)
def test_locks_are_what_the_project_asks_for(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert problems(project, EXTRAS[name], (LOCKS / f"{name}.txt").read_text()) == []


def test_both_fit_into_one_environment() -> None:
    studio, serving = (
        dict(
            re.findall(r"^([\w.-]+)(?:\[.*?\])?==(\S+)", (LOCKS / f"{name}.txt").read_text(), re.M)
        )
        for name in ("studio", "serving")
    )
    shared = studio.keys() & serving.keys()
    assert {"numpy", "uvicorn", "fastapi"} <= shared
    assert {name: studio[name] for name in shared} == {name: serving[name] for name in shared}


def test_extras_of_extras_are_followed() -> None:
    assert [each.name for each in requirements(PROJECT, ("web",))] == [
        "numpy", "rich", "numpy", "rich", "httpx", "uvicorn",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("", ""), None),
        (("rich==14.0", "rich==15.0"), "rich<15,>=13 is locked at 15.0"),
        (("httpx==", "httpy=="), "missing: httpx>=0.27"),
        (("numpy==2.1.0", "numpy>=2"), "not a pinned version: numpy>=2 \\"),
        (("2.1.0 \\\n    --hash=sha256:" + "0" * 64, "2.1.0"), "no digest: numpy"),
        (("numpy", "--index-url https://example.org\nnumpy"), "a host is named"),
    ],
)
def test_each_problem_is_told(change: tuple[str, str], problem: str | None) -> None:
    wrong = problems(PROJECT, ("web",), GOOD.replace(*change, 1))
    assert (problem in wrong) if problem else wrong == []
