"""One table of all verdicts: every numbered table and figure of the papers, and where it stands."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from studies.claims import Claim, read_claims, table

PAPERS = {
    "Niu'12": "Niu et al., *Top-k learning to rank: labeling, ranking and evaluation*, SIGIR 2012",
    "Lan'13": "Lan et al., *Is top-k sufficient for ranking?*, CIKM 2013",
    "Zhou'12": "Zhou et al., *Learning the gain values and discount factors of discounted "
    "cumulative gains*, IEEE TKDE 2012",
    "Xia'09": "Xia et al., *Statistical consistency of top-k ranking*, NIPS 2009",
    "Cheng'14": "Cheng et al., *TopRank: a novel top-k ranking method based on rank aggregation*, "
    "2014",
}
"""The papers by their short names."""

NUMBERED: dict[str, tuple[str, ...]] = {
    "Niu'12": (*(f"Table {n}" for n in range(1, 6)), "Figure 1", "Figure 2"),
    "Lan'13": ("Figure 1", "Figure 2"),
    "Zhou'12": ("Table 1", *(f"Figure {n}" for n in range(1, 24))),
    "Xia'09": tuple(f"Table {n}" for n in range(1, 7)),
    "Cheng'14": tuple(f"Figure {n}" for n in range(1, 5)),
}
"""Every numbered table and figure of each paper."""

_NOTHING_TO_RUN = {
    ("Cheng'14", "Figure 1"): "a drawing of how the parts of TopRank fit together, which "
    "`CascadeRanker` follows: there is nothing to measure",
    ("Zhou'12", "Table 1"): "counts of the five verdicts in a news search of Yahoo's, which is not "
    "available; the studio asks for the same five",
}


def evidence_page(pages: Path) -> str:
    """The table of all verdicts in the pages of a folder.

    Args:
        pages: The folder with the pages that the studies have written.
    """
    claims: dict[tuple[str, str], tuple[Claim, str]] = {}
    for page in sorted(pages.glob("*.md")):
        if page.name != "index.md":
            text = page.read_text(encoding="utf-8")
            for claim in read_claims(text):
                claims[claim.paper, claim.item] = (claim, page.name)
    counted = Counter[str]()
    sections = []
    for paper, items in NUMBERED.items():
        more = [item for of, item in claims if of == paper and item not in items]
        rows = []
        for item in (*items, *more):
            claim, page_name = claims.get((paper, item), (_absent(paper, item), ""))
            if item in items:
                counted[claim.verdict] += 1
            rows.append(_row(claim, page_name))
        sections += [f"## {paper}\n\n{PAPERS[paper]}.\n", table(_HEAD, rows, numbers=False)]
    ours = [_row(*claims[key]) for key in claims if key[0] not in NUMBERED]
    if ours:
        sections += ["## Our own question\n", table(_HEAD, ours, numbers=False)]
    total = ", ".join(f"{count} {verdict}" for verdict, count in counted.most_common())
    return "\n".join([_INTRODUCTION.format(total=total, count=sum(counted.values())), *sections])


_HEAD = ("what", "verdict", "measured here", "why, and what differs", "study")


def _absent(paper: str, item: str) -> Claim:
    why = _NOTHING_TO_RUN.get((paper, item), "no page of a study says anything of it yet")
    return Claim(paper, item, "", "—", "not run", why)


def _row(claim: Claim, page: str) -> list[str]:
    link = f"[{page.removesuffix('.md')}]({page})" if page else ""
    return [claim.item, f"**{claim.verdict}**", _clause(claim.measured), _clause(claim.why), link]


def _clause(text: str) -> str:
    """The first clause of a text, and a mark if it goes on."""
    first, *rest = _CLAUSES.split(text, maxsplit=1)
    return f"{first} …" if rest else first


_CLAUSES = re.compile(r"(?:;|(?<! al)\.) ")


_INTRODUCTION = """---
hide: [toc]
---

# Evidence

Do the results of the papers behind Podium hold? Every numbered table and figure in them, every
theorem that was tested, what was measured here, and a verdict. Each study is one command,
`python -m studies NAME DATA` at the root of the repository (with the extra `studies`); its page
names the data, the versions and the time, and shows the tables and plots in full. No data come with
Podium. DATA is a folder that you fill: `letor/MQ2007/S1.txt.gz` to `S5.txt.gz`, the same for
`letor/MQ2008` and `letor/OHSUMED`, `letor/OHSUMED-2/Fold1.training.txt.gz` and so on,
`yandex/features.txt.gz` and `featuresTest.txt.gz`, `mslr-sample/sample.txt.gz`,
`preferences/image-search`; what is not there is left out. This page is written by
`python -m studies evidence docs/studies`.

A verdict is about the claim, not about a digit: *reproduced* where the claim holds here, *partly*
where a part of it does (which may be small: a model that is ahead on some data sets, as some model
has to be, or one of several tests below 5 %; the rows say how much), *on a stand-in* where other
data or simulated people took the place of the paper's, *not reproduced* where it fails, *not run*
where the data are not available and no substitute exists. Of what was measured, and of what
differs, the first clause is here, and … where the study's page has more.
Of {count} numbered tables and figures: {total}.
"""
