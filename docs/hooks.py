"""MkDocs hook: the pages of commands, measures and names are written from the code itself."""

import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

_log = logging.getLogger("mkdocs.hooks")

# `--app` is named: left to guess, Typer would document `main` as one command without verbs.
_WRITE = ["-m", "typer", "--app", "app", "podium.cli", "utils", "docs", "--name", "podium"]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace a page's mark by what it stands for."""
    for mark, write in _WRITERS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, write())
    return markdown


def on_post_build(config: Any) -> None:
    """Warn of public names that the reference lacks, which a strict build takes for an error."""
    pages = Path(config["site_dir"]).glob("reference/**/*.html")
    documented = {
        each for page in pages for each in re.findall(r'id="(podium\.[\w.]+)"', page.read_text())
    }
    root = _package()
    for package in PACKAGES:
        for name in root[package].exports:
            if f"podium.{package}.{name}" not in documented:
                _log.warning("No page of the reference has podium.%s.%s.", package, name)


def _commands() -> str:
    """Every command's help, as Typer writes it."""
    done = subprocess.run(  # noqa: S603 (a constant)
        [sys.executable, *_WRITE], stdout=subprocess.PIPE, text=True, check=True
    )
    # The page has its own title; every heading keeps its level below it.
    return done.stdout.replace("# `podium`\n", "", 1)


def _measures() -> str:
    """Every measure of the registry, its formulas as MathML, which browsers draw themselves."""
    from latex2mathml.converter import convert

    from podium.measures.reference import reference_page

    page = reference_page().removeprefix("# Measures\n")
    page = re.sub(
        r"\$\$(.+?)\$\$", lambda match: convert(match[1], display="block"), page, flags=re.S
    )
    return re.sub(r"\$(.+?)\$", lambda match: convert(match[1]), page)


PACKAGES = (
    "data",
    "measures",
    "losses",
    "aggregation",
    "judging",
    "judging.agreement",
    "judging.algorithms",
    "utility",
    "rankers",
    "cluster",
    "export",
    "features",
    "explain",
    "tracking",
    "monitoring",
    "clicks",
    "online",
    "hybrid",
    "serving",
)
"""The packages whose public names have a page; tests check that each name is documented."""


def _package() -> Any:
    """Podium's source, read and not imported: a site needs none of its extras."""
    import griffe

    extensions = griffe.load_extensions(str(Path(__file__).with_name("measures_in_reference.py")))
    return griffe.load("podium", extensions=extensions)


def _names() -> str:
    """Every public name of every package, with the first line of its documentation."""
    root = _package()
    lines = []
    for package in PACKAGES:
        module = root[package]
        lines += ["", f"## podium.{package}", "", "| name | what it is |", "| --- | --- |"]
        for name in sorted(module.exports):
            definition = module[name]
            text = (definition.final_target if definition.is_alias else definition).docstring.value
            lines.append(f"| `{name}` | {text.partition(chr(10))[0]} |")
    return "\n".join(lines)


_WRITERS = {
    "<!-- commands -->": _commands,
    "<!-- measures -->": _measures,
    "<!-- names -->": _names,
}
