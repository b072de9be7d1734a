"""What a study is, how it runs, and the page that it writes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from podium.cluster import Cluster
from podium.errors import ArgumentError
from podium.threads import thread_count
from studies.claims import Claim, claims_table
from studies.leaderboard import LeaderboardPlan
from studies.leaderboard import run as run_plan
from studies.parts import Part, read_parts, run_parts

RESULTS = "results.parquet"
"""The table with the results of a study's parts."""

PACKAGES = ("podium", "numpy", "scipy", "numba", "lightgbm", "scikit-learn", "matplotlib")
"""Whose versions a page names."""


@dataclass(frozen=True)
class Setup:
    """Where and how a study runs.

    Attributes:
        root: The folder under which all studies keep their results, each in one of its own.
        data: The folder with the data sets, if there is one.
        quick: Small sizes.
    """

    root: Path
    data: Path | None = None
    quick: bool = False

    def folder(self, name: str) -> Path:
        """The folder that a study keeps its results in."""
        return self.root / name / "quick" if self.quick else self.root / name

    def has(self, folder: str) -> bool:
        """Whether the data folder has something."""
        return self.data is not None and (self.data / folder).exists()


@dataclass(frozen=True)
class Written:
    """The page of a study, but for what all pages have.

    Attributes:
        claims: The verdicts.
        sections: Markdown; pictures are in ``../images``.
    """

    claims: Sequence[Claim]
    sections: Sequence[str]


@dataclass(frozen=True)
class Study:
    """A study: what it runs, and what it writes of the results.

    Attributes:
        name: On the command line and of its page.
        title: The title of its page.
        about: A line for the command's help.
        introduction: What the papers claim, and how it is tested.
        data: What data it reads, in words.
        parts: The work.
        write: The page of the parts' values; draws its pictures into a folder.
        plan: The lines of the leaderboard that it needs, if any.
        needs_data: Whether it can do nothing without the data folder.
    """

    name: str
    title: str
    about: str
    introduction: str
    data: str
    parts: Callable[[Setup], Sequence[Part]]
    write: Callable[[Mapping[str, Any], Setup, Path], Written]
    plan: Callable[[Setup], LeaderboardPlan | None] = lambda _setup: None
    needs_data: bool = False


Progress = Callable[[int, int], None]


def run_study(
    study: Study,
    setup: Setup,
    progress: Progress | None = None,
    *,
    cluster: Cluster | None = None,
) -> None:
    """Run what a study has no results of yet.

    Args:
        study: Which.
        setup: Where and how.
        progress: Told how many pieces of work are done, of how many.
        cluster: Where to work, with the data under the same path; by default this machine.
    """
    _check(study, setup)
    plan, parts = study.plan(setup), study.parts(setup)
    tasks = 0 if plan is None else len(list(plan.tasks()))
    if plan is not None:
        run_plan(
            plan,
            None if progress is None else lambda done, _total: progress(done, tasks + len(parts)),
            cluster=cluster,
        )
    run_parts(
        parts,
        setup.folder(study.name) / RESULTS,
        None if progress is None else lambda done, total: progress(tasks + done, tasks + total),
        cluster=cluster,
    )


def study_page(study: Study, setup: Setup, images: Path) -> str:
    """The page of the results that there are, whose pictures are drawn into a folder."""
    _check(study, setup)
    done = read_parts(study.parts(setup), setup.folder(study.name) / RESULTS)
    written = study.write(done.values, setup, images)
    # Tables are wide: the site leaves its table of contents out.
    made = [
        "---\nhide: [toc]\n---\n",
        f"# {study.title}\n",
        study.introduction.strip() + "\n",
    ]
    if written.claims:
        made += ["## Verdicts\n", claims_table(written.claims)]
    made += written.sections
    command = f"python -m studies {study.name}{' DATA' if study.data else ''}"
    command += " --quick" if setup.quick else f" --page docs/studies/{study.name}.md"
    made += ["## How it was made\n", f"```sh\n{command}\n```\n", _about(study, done.seconds, setup)]
    if done.codes:
        made.append(f"Results are kept until they are deleted: made by {'; '.join(done.codes)}.\n")
    return "\n".join(made)


def _check(study: Study, setup: Setup) -> None:
    if study.needs_data and setup.data is None:
        raise ArgumentError(
            f"{study.name} needs data sets.",
            hint="Name the folder that has them (letor/MQ2007, …).",
        )


def _about(study: Study, seconds: float, setup: Setup) -> str:
    size = (
        " These are the small sizes of `--quick`: too small for a verdict." if setup.quick else ""
    )
    data = f"Data: {study.data}" if study.data else "No data are read: all of it is simulated."
    if study.data and setup.data is None:
        data += " No data folder was named, so what needs it was not run."
    return (
        f"{data}{size} {versions()}, on {thread_count()} cores; "
        f"{spelled(seconds)} of processor time.\n"
    )


def versions(packages: Sequence[str] = PACKAGES) -> str:
    """The versions of Python and of those packages that are installed."""
    installed = [f"Python {platform.python_version()}"]
    for name in packages:
        with suppress(PackageNotFoundError):
            installed.append(f"{name} {version(name)}")
    return ", ".join(installed)


def spelled(seconds: float) -> str:
    """A time in seconds or minutes.

    Example:
        >>> spelled(12.3), spelled(600)
        ('12 s', '10.0 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
