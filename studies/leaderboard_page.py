"""The leaderboard as a page of Markdown, and its full tables as CSV beside it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from studies.collections import COLLECTIONS
from studies.leaderboard_models import TREE_TRIALS, K
from studies.standings import COMPONENTS, ERR, Standing, beside_published, choices

_COLUMNS = {
    "graded": ["nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@10", "AP", "ERR", "letor:nDCG@10"],
    "top-k": [f"kNDCG(k={K})@{cut}" for cut in (1, 3, 5, 10)] + [f"kERR(k={K})"],
}
_FAMILIES = {"literature": "model", "trees": "trees", "peers": "peer"}


class Table(NamedTuple):
    """A table of words: its headings and its rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def csv(self) -> str:
        """Return the table as CSV."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.head, *self.rows])
        return text.getvalue()


def leaderboard_tables(standings: Sequence[Standing]) -> dict[str, Table]:
    """Return all tables by the names of their files, without the suffix."""
    marks = _marks(standings)
    tables = {_file(each.collection, each.truth): _table(each, marks) for each in standings}
    published = _published(standings)
    if published.rows:
        tables["published"] = published
    return tables | {"focused": _focused(standings)}


def leaderboard_page(
    standings: Sequence[Standing],
    tables: Mapping[str, Table],
    about: str,
    name: str = "leaderboard",
) -> str:
    """The whole page.

    Args:
        standings: The results.
        tables: Their tables; the page links them as files in a folder of its name.
        about: With which versions and on what machine it was measured.
        name: The name of the page and its pictures; a page of another name is of some data sets
            only.
    """
    marks = _marks(standings)
    counts = _codes(standings).most_common()
    made = "; ".join(f"{count:,} by {code}{marks[code]}" for code, count in counts)
    kept = f" Results are kept until they are deleted: {made}." if made else ""
    sets = {_file(each.collection, each.truth): _about(each) for each in standings}
    curves = any(standing.best("curve") is not None for standing in standings)
    return page_of(tables, sets, _choices(standings), f"{about}{kept}", name, curves=curves)


def page_of(
    tables: Mapping[str, Table],
    sets: Mapping[str, str],
    chosen: Table,
    about: str,
    name: str,
    *,
    curves: bool,
) -> str:
    """Return the page of tables: what is said of each data set is by the name of its table."""
    title, only = "Leaderboard", ""
    if name != "leaderboard":
        some = dict.fromkeys(each.removesuffix("-graded").removesuffix("-top-k") for each in sets)
        title, only = f"Leaderboard: {', '.join(some)}", "".join(f" --only {each}" for each in some)
    words = {"title": title, "only": only, "name": name, "about": about}
    parts = [_INTRODUCTION.format(trials=TREE_TRIALS, **words)]
    parts += ["## Podium's choice beside the best peer\n", _markdown(chosen), _CHOSEN]
    parts += ["## The best of each family\n", _markdown(_best(tables, sets, name))]
    for truth in ("graded", "top-k"):
        if any(each.endswith(truth) for each in sets):
            parts.append(f"![All entries, {truth}](../images/{name}-{truth}.svg)\n")
    if "published" in tables:
        within = [row[-1] for row in tables["published"].rows]
        parts += [
            "## Beside published figures\n",
            f"Of {len(within)} figures of the papers and of LETOR, {within.count('yes')} are in "
            f"our 95 % interval: [all of them]({name}/published.csv).\n",
        ]
    parts += ["## FocusedRank and its two halves\n", _focused_summary(tables["focused"], name)]
    if curves:
        parts.append("![Over beta](../images/focused-beta.svg)\n")
    return "\n".join(parts)


_CHOSEN = (
    "Podium's entry is the one that validation queries choose; the peer is the one that does best "
    "on the test queries themselves.\n"
)


def _best(tables: Mapping[str, Table], sets: Mapping[str, str], name: str) -> Table:
    rows = []
    for key, about in sets.items():
        head, entries = tables[key]
        column = head.index("nDCG@10" if key.endswith("-graded") else "kNDCG@10")
        best = []
        for family in _FAMILIES.values():
            # The table is sorted: the first of a family is its best.
            first = next((row for row in entries if row[1] == family), None)
            best.append("" if first is None else f"{first[0]} {first[column]}")
        rows.append([f"[{key}]({name}/{key}.csv)", about, *best])
    return Table(["all entries", "of", *_FAMILIES.values()], rows)


_INTRODUCTION = """# {title}

Every model of the literature, gradient-boosted trees with Podium's losses, and what people train
today, on graded truth and on that of the top 10. Written by

```sh
python -m studies leaderboard DATA{only} --page docs/studies/{name}.md
```

Five folds: three parts train, one chooses parameters, one tests; in a fold, test queries choose
nothing. Which of Podium's entries is its choice is decided by the mean over the validation queries
of all folds, which in other folds are test queries; the peer that it is held against is chosen on
the test queries themselves.
Linear models choose one of seven penalties, FocusedRank twelve combinations of penalty and beta;
whatever is made of trees, a peer or Podium's own, has {trials} trainings to choose from, with at
most 300 trees and early stopping on the validation queries. *trees vote* spends its four trainings
on four losses and lets supervised Kemeny decide. Graded truth is measured by Podium's conventions
(gain 2^y - 1, discount 1 / log2(1 + rank), ties averaged over) and, under *LETOR*, by LETOR 4.0's
own script. Top-k truth is the order of the ten best documents: on Yandex, whose labels are finely
graded, nearly the real one; elsewhere drawn at random within grades, as Niu et al. (2012) do, so
that no ranker can know much of it.

*p* is of a paired t-test against the best peer. Seconds are processor time of one thread, all
folds, trainings and choices together. {about}
"""


def _about(standing: Standing) -> str:
    """What is said of a set; also whether its run was broken off."""
    there = {row.family for row in standing.rows.values()}
    missing = [family for family in _FAMILIES if family not in there]
    lacks = f". Broken off: nothing of {', '.join(missing)} yet" if missing else ""
    return f"{COLLECTIONS[standing.collection].about}{lacks}"


def _file(collection: str, truth: str) -> str:
    return f"{collection}-{truth}"


def _number(value: float) -> str:
    return f"{value:.4f}"


def _markdown(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rule = "| --- |" + " ---: |" * (len(table.head) - 1)
    return "\n".join([line(table.head), rule, *map(line, table.rows), ""])


def _heading(measure: str) -> str:
    return measure.replace(f"(k={K})", "").replace("letor:nDCG", "LETOR")


def _codes(standings: Sequence[Standing]) -> Counter[str]:
    return Counter(code for each in standings for row in each.rows.values() for code in row.codes)


def _marks(standings: Sequence[Standing]) -> dict[str, str]:
    """Return a mark for each code that made results, none for the most frequent one."""
    names = [code for code, _ in _codes(standings).most_common()]
    return {code: f" [{number}]" if number else "" for number, code in enumerate(names)}


def _table(standing: Standing, marks: Mapping[str, str]) -> Table:
    peer = standing.strongest(standing.measure)
    columns = _COLUMNS[standing.truth]
    rows = []
    shown = [row for row in standing.rows.values() if row.family in _FAMILIES]
    for row in sorted(shown, key=lambda row: -row.mean(standing.measure)):
        mean, low, _high = standing.interval(row.entry, standing.measure)
        own = peer is None or row is peer
        rows.append(
            [
                row.entry + "".join(dict.fromkeys(marks[code] for code in row.codes)),
                _FAMILIES[row.family],
                *(_number(row.mean(column)) for column in columns),
                f"{mean - low:.3f}",
                "" if own or peer is None else f"{standing.against(row.entry, peer.entry)[1]:.2g}",
                f"{row.seconds:.0f}",
            ]
        )
    return Table(["entry", "family", *map(_heading, columns), "± 95 %", "p", "seconds"], rows)


def _published(standings: Sequence[Standing]) -> Table:
    rows = [
        [
            entry.published.collection,
            entry.published.entry,
            entry.measure.removeprefix("letor:"),
            entry.published.source,
            _number(entry.figure),
            _number(entry.mean),
            f"{entry.mean - entry.figure:+.4f}",
            "yes" if entry.low <= entry.figure <= entry.high else "no",
        ]
        for entry in beside_published(standings)
    ]
    head = ["data", "model", "measure", "source", "published", "here", "difference", "within 95 %"]
    return Table(head, rows)


def _focused(standings: Sequence[Standing]) -> Table:
    rows = []
    for standing in standings:
        for name, halves in COMPONENTS.items():
            for kind, half in zip(_HALVES, halves, strict=True):
                if name not in standing.rows or half not in standing.rows:
                    continue
                for measure in (standing.measure, ERR[standing.truth]):
                    difference, p = standing.against(name, half, measure)
                    verdict = "even" if p >= 0.05 else "ahead" if difference > 0 else "behind"
                    cells = [_heading(measure), f"{difference:+.4f}", f"{p:.2g}", verdict]
                    data = _file(standing.collection, standing.truth)
                    rows.append([data, name, kind, half, *cells])
    head = ["data", "FocusedRank", "half", "against", "measure", "difference", "p", "verdict"]
    return Table(head, rows)


_HALVES = ("list", "pair")


def _focused_summary(table: Table, name: str) -> str:
    parts = []
    for kind in _HALVES:
        verdicts = [row[-1] for row in table.rows if row[2] == kind and row[4] == f"kNDCG@{K}"]
        parts.append(
            f"Of {len(verdicts)} comparisons with the {kind} half, FocusedRank is ahead in "
            f"{verdicts.count('ahead')}, even in {verdicts.count('even')} and behind in "
            f"{verdicts.count('behind')}."
        )
    return (
        "Niu et al. (2012) claim that FocusedRank is ahead of both models it is made of on top-k "
        f"truth. Here, by kNDCG@{K} on top-k truth and a paired t-test at 0.05: {' '.join(parts)} "
        f"[All comparisons]({name}/focused.csv).\n"
    )


def _choices(standings: Sequence[Standing]) -> Table:
    rows = [
        [
            f"{choice.standing.collection}, {choice.standing.truth}",
            _heading(choice.measure),
            f"{choice.ours.entry} {_number(choice.ours.mean(choice.measure))}",
            f"{choice.theirs.entry} {_number(choice.theirs.mean(choice.measure))}",
            f"{choice.difference:+.4f}",
            f"{choice.p:.2g}",
        ]
        for choice in choices(standings)
    ]
    return Table(["data", "measure", "Podium's choice", "best peer", "difference", "p"], rows)
