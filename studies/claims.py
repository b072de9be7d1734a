"""What became of a paper's claims, and tables of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

ClaimVerdict: TypeAlias = Literal[
    "reproduced", "reproduced on a stand-in", "partly", "not reproduced", "not run"
]
"""How a claim fared; ``not run`` where there was nothing to run it on."""


def on_a_stand_in(verdict: ClaimVerdict) -> ClaimVerdict:
    """The verdict where other data, or simulated people, stand in for the paper's.

    Example:
        >>> on_a_stand_in("reproduced"), on_a_stand_in("partly")
        ('reproduced on a stand-in', 'partly')
    """
    return "reproduced on a stand-in" if verdict == "reproduced" else verdict


def of_parts(*parts: bool) -> ClaimVerdict:
    """The verdict on a claim whose parts hold or do not.

    Example:
        >>> of_parts(True, True), of_parts(True, False), of_parts(False, False)
        ('reproduced', 'partly', 'not reproduced')
    """
    return "reproduced" if all(parts) else "partly" if any(parts) else "not reproduced"


@dataclass(frozen=True)
class Claim:
    """A numbered table, figure or theorem of a paper, and what was measured beside it.

    Attributes:
        paper: Its short name, as ``Niu'12``.
        item: As ``Table 1``.
        says: What the paper claims or reports.
        measured: What was measured here.
        verdict: How it fared.
        why: What stands in for data that are not available, or what differs.
    """

    paper: str
    item: str
    says: str
    measured: str
    verdict: ClaimVerdict
    why: str = ""


HEAD = ("what", "the paper says", "measured here", "verdict", "why, and what differs")
"""The columns of a table of claims."""


def claims_table(claims: Iterable[Claim]) -> str:
    """Claims as a table of Markdown.

    Example:
        >>> print(claims_table([Claim("Lan'13", "Theorem 1", "a bound", "it holds", "reproduced")]))
        | what | the paper says | measured here | verdict | why, and what differs |
        | --- | --- | --- | --- | --- |
        | Lan'13, Theorem 1 | a bound | it holds | **reproduced** |  |
        <BLANKLINE>
    """
    rows = [
        [f"{each.paper}, {each.item}", each.says, each.measured, f"**{each.verdict}**", each.why]
        for each in claims
    ]
    return table(HEAD, rows, numbers=False)


def read_claims(page: str) -> list[Claim]:
    """The claims of a page that a study has written.

    Example:
        >>> claim = Claim("Lan'13", "Theorem 1", "a bound", "it holds", "reproduced")
        >>> read_claims(claims_table([claim])) == [claim]
        True
    """
    lines = page.splitlines()
    head = "| " + " | ".join(HEAD) + " |"
    claims = []
    for line in lines[lines.index(head) + 2 :] if head in lines else []:
        if not line.startswith("| "):
            break
        what, says, measured, verdict, why = (cell.strip() for cell in line[1:-1].split("|"))
        paper, _, item = what.partition(", ")
        claims.append(Claim(paper, item, says, measured, verdict.strip("*"), why))  # type: ignore[arg-type]
    return claims


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """A table of Markdown, whose columns but the first are numbers if not said otherwise."""
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("| --- |" + (" ---: |" if numbers else " --- |") * (len(head) - 1))
    text = "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])
    # A figure and its per cent sign stay on one line, written the same everywhere.
    return re.sub(r"(\d) ?%", "\\1\u00a0%", text)
