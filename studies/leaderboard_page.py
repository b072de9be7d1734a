"""The leaderboard as a page of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from studies.collections import COLLECTIONS
from studies.leaderboard_models import TREE_TRIALS, K
from studies.standings import COMPONENTS, ERR, Standing, beside_published, choices

_COLUMNS = {
    "graded": ["nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@10", "AP", "ERR", "letor:nDCG@10"],
    "top-k": [f"kNDCG(k={K})@{cut}" for cut in (1, 3, 5, 10)] + [f"kERR(k={K})"],
}
_FAMILIES = {"literature": "model", "trees": "trees", "peers": "peer"}


def leaderboard_page(standings: Sequence[Standing], about: str, name: str = "leaderboard") -> str:
    """The whole page.

    Args:
        standings: The results.
        about: With which versions and on what machine it was measured.
        name: The name of the page and its pictures; a page of another name is of some data sets
            only.
    """
    marks = _marks(standings)
    title, only = "Leaderboard", ""
    if name != "leaderboard":
        sets = dict.fromkeys(standing.collection for standing in standings)
        title, only = f"Leaderboard: {', '.join(sets)}", "".join(f" --only {each}" for each in sets)
    about = f"{about} {_made_by(standings, marks)}"
    run = f"What has run: {'; '.join(map(_title, standings))}."
    words = {"title": title, "only": only, "name": name, "run": run, "about": about}
    parts = [_INTRODUCTION.format(trials=TREE_TRIALS, **words), *_findings(standings)]
    if any(beside_published(standings)):
        parts += ["## Beside published figures\n", _published(standings)]
    parts += ["## FocusedRank and its two halves\n", _focused(standings)]
    pictures = dict.fromkeys(standing.truth for standing in standings)
    parts += [f"![All entries, {truth}](../images/{name}-{truth}.svg)\n" for truth in pictures]
    for standing in standings:
        parts.append(f"## {_title(standing)}\n")
        parts.append(f"{COLLECTIONS[standing.collection].about}.{_lacks(standing)}\n")
        parts.append(_table(standing, marks))
    return "\n".join(parts)


_INTRODUCTION = """# {title}

Every model of the literature, gradient-boosted trees with Podium's losses, and what people train
today. {run}

Written by

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


def _lacks(standing: Standing) -> str:
    """What is said of a set whose run was broken off."""
    there = {row.family for row in standing.rows.values()}
    missing = [family for family in _FAMILIES if family not in there]
    return f" Broken off: nothing of {', '.join(missing)} yet." if missing else ""


def _title(standing: Standing) -> str:
    return f"{standing.collection}, {_truth(standing)}"


def _truth(standing: Standing) -> str:
    return "graded truth" if standing.truth == "graded" else f"truth of the top {K}"


def _number(value: float) -> str:
    return f"{value:.4f}"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])


def _heading(measure: str) -> str:
    return measure.replace(f"(k={K})", "").replace("letor:nDCG", "LETOR")


def _marks(standings: Sequence[Standing]) -> dict[str, str]:
    """A mark for each code that made results, the most frequent first and without one."""
    counted = Counter(_codes(standings))
    names = [code for code, _ in counted.most_common()]
    return {code: "" if not number else f" [{number}]" for number, code in enumerate(names)}


def _made_by(standings: Sequence[Standing], marks: Mapping[str, str]) -> str:
    counted = Counter(_codes(standings))
    counts = [f"{count:,} by {code}{marks[code]}" for code, count in counted.most_common()]
    return f"Results are kept until they are deleted: {'; '.join(counts)}." if counts else ""


def _codes(standings: Sequence[Standing]) -> Iterator[str]:
    return (code for each in standings for row in each.rows.values() for code in row.codes)


def _table(standing: Standing, marks: Mapping[str, str]) -> str:
    peer = standing.strongest(standing.measure)
    columns = _COLUMNS[standing.truth]
    head = ["entry", *map(_heading, columns), "95 %", "p", "seconds"]
    rows = []
    shown = [row for row in standing.rows.values() if row.family in _FAMILIES]
    for row in sorted(shown, key=lambda row: -row.mean(standing.measure)):
        mean, low, _high = standing.interval(row.entry, standing.measure)
        p = (
            ""
            if peer is None or row is peer
            else f"{standing.against(row.entry, peer.entry)[1]:.2g}"
        )
        name = f"**{row.entry}**" if row is peer else row.entry
        made = "".join(dict.fromkeys(marks[code] for code in row.codes))
        rows.append(
            [
                f"{name} ({_FAMILIES[row.family]}){made}",
                *(_number(row.mean(column)) for column in columns),
                f"± {mean - low:.3f}",
                p,
                f"{row.seconds:,.0f}",
            ]
        )
    return _markdown(head, rows)


def _published(standings: Sequence[Standing]) -> str:
    rows = [
        [
            entry.published.collection,
            entry.published.entry,
            entry.measure.removeprefix("letor:"),
            f"{_number(entry.figure)} ({entry.published.source})",
            _number(entry.mean),
            f"{entry.mean - entry.figure:+.4f}",
            "yes" if entry.low <= entry.figure <= entry.high else "no",
        ]
        for entry in beside_published(standings)
    ]
    head = ["data", "model", "measure", "published", "here", "difference", "in our 95 % interval"]
    return _markdown(head, rows)


def _focused(standings: Sequence[Standing]) -> str:
    rows = []
    verdict_counts: dict[str, Counter[str]] = {"list": Counter(), "pair": Counter()}
    for standing in standings:
        for name, halves in COMPONENTS.items():
            for kind, half in zip(verdict_counts, halves, strict=True):
                if name not in standing.rows or half not in standing.rows:
                    continue
                cells = []
                for measure in (standing.measure, ERR[standing.truth]):
                    difference, p = standing.against(name, half, measure)
                    verdict = "even" if p >= 0.05 else "ahead" if difference > 0 else "behind"
                    cells.append(f"{difference:+.4f} (p {p:.2g}, {verdict})")
                    if standing.truth == "top-k" and measure == standing.measure:
                        verdict_counts[kind][verdict] += 1
                rows.append([f"{standing.collection}, {standing.truth}", name, half, *cells])
    curves = ""
    if any(standing.best("curve") is not None for standing in standings):
        curves = "\n![Over beta](../images/focused-beta.svg)\n"
    head = ["data", "FocusedRank", "against", "nDCG@10 or kNDCG@10", "ERR or kERR"]
    summary = " ".join(
        f"Of {sum(counts.values())} comparisons with the {kind} half, FocusedRank is ahead in "
        f"{counts['ahead']}, even in {counts['even']} and behind in {counts['behind']}."
        for kind, counts in verdict_counts.items()
    )
    claim = (
        "Niu et al. (2012) claim that FocusedRank is ahead of both models it is made of on top-k "
        f"truth. Here, by kNDCG@10 on top-k truth and a paired t-test at 0.05: {summary}\n\n"
    )
    return claim + _markdown(head, rows) + curves


def _findings(standings: Sequence[Standing]) -> list[str]:
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
    head = ["data", "measure", "Podium's choice", "best peer", "difference", "p"]
    return [
        "## Podium's choice beside the best peer\n",
        _markdown(head, rows),
        "Podium's entry is the one that validation queries choose; the peer is the one that does "
        "best on the test queries themselves.\n",
    ]
