"""Labels from preferences that were collected elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np

from podium.data.judged import Judgments
from podium.data.preferences import Preferences
from podium.judging.entries import Outcome, Verdict
from podium.judging.session import Session


def preference_judgments(
    preferences: Preferences, k: int = 10, *, ties: bool = False, seed: int = 0
) -> Judgments:
    """Return the estimated order of each query's top k as labels.

    Each query is a session that has all of its verdicts, and its estimate weighs them as
    ``Session.estimate`` does: pairs may be judged several times, contradict each other and be few.

    Args:
        preferences: Judged pairs; who judged them is not known.
        k: The length of the order: the best document has label k, those below the top k have 0.
        ties: Whether documents that were judged equal have the same label.
        seed: For the order of documents between which nothing decides.

    Example:
        >>> pairs = Preferences.from_columns(["q"] * 2, ["a", "b"], ["b", "c"], [1, 1])
        >>> judgments = preference_judgments(pairs, k=2)
        >>> dict(zip(judgments.document_ids.to_pylist(), judgments.labels.tolist()))
        {'a': 2.0, 'b': 1.0, 'c': 0.0}
    """
    queries: list[str] = []
    documents: list[str] = []
    labels = []
    for index, query in enumerate(preferences.query_ids.to_pylist()):
        rows = slice(int(preferences.offsets[index]), int(preferences.offsets[index + 1]))
        left, right = preferences.left[rows].to_pylist(), preferences.right[rows].to_pylist()
        items = list(dict.fromkeys([*left, *right]))
        session = Session(items, k, seed=seed, log=_log(left, right, preferences.verdicts[rows]))
        queries += [query] * len(items)
        documents += items
        labels.append(session.estimate().labels(items, ties=ties))
    return Judgments.from_columns(queries, documents, np.concatenate(labels))


def _log(left: list[str], right: list[str], verdicts: np.ndarray) -> list[Verdict]:
    """Return verdicts; of a pair that was judged before, another person's."""
    earlier: Counter[frozenset[str]] = Counter()
    log = []
    for one, other, verdict in zip(left, right, verdicts.tolist(), strict=True):
        pair = frozenset((one, other))
        log.append(Verdict(one, other, Outcome(verdict), assessor=f"judge {earlier[pair]}"))
        earlier[pair] += 1
    return log
