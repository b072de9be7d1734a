"""Labels from preferences that were collected elsewhere."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np

from podium.data.judged import Judgments
from podium.data.preferences import Preferences
from podium.judging.entries import Outcome, Verdict
from podium.judging.session import Session


def preference_judgments(
    preferences: Preferences, k: int = 10, *, ties: bool = False, random_state: int = 0
) -> Judgments:
    """Return the estimated order of each query's top k as labels.

    Each query is a session that has all of its verdicts, and its estimate weighs them as
    ``Session.estimate`` does: pairs may be judged several times, contradict each other and be few.
    All verdicts count alike, because who judged is not known, and neither the order of rows nor the
    seed matters, except for documents that no verdict separates: a warning says how many there are.

    Args:
        preferences: Judged pairs; who judged them is not known.
        k: The length of the order: the best document has label k, those below the top k have 0.
        ties: Whether documents that were judged equal have the same label.
        random_state: Draws the order of documents that nothing separates.

    Example:
        >>> pairs = Preferences.from_columns(["q"] * 2, ["a", "b"], ["b", "c"], [1, 1])
        >>> judgments = preference_judgments(pairs, k=2)
        >>> dict(zip(judgments.document_ids.to_pylist(), judgments.labels.tolist()))
        {'a': 2.0, 'b': 1.0, 'c': 0.0}
    """
    queries: list[str] = []
    documents: list[str] = []
    labels = []
    drawn = []
    for index, query in enumerate(preferences.query_ids.to_pylist()):
        rows = slice(int(preferences.offsets[index]), int(preferences.offsets[index + 1]))
        left, right = preferences.left[rows].to_pylist(), preferences.right[rows].to_pylist()
        items = sorted({*left, *right})
        session = Session(
            items, k, random_state=random_state, log=_log(left, right, preferences.verdicts[rows])
        )
        estimate = session.estimate(reliability=False)
        queries += [query] * len(items)
        documents += items
        labels.append(estimate.labels(items, ties=ties))
        drawn.append(sum(map(len, estimate.inseparable)))
    if any(drawn):
        warnings.warn(
            f"nothing separates {sum(drawn)} documents in or at the top {k} of "
            f"{np.count_nonzero(drawn)} of {len(drawn)} queries: the seed draws their order",
            stacklevel=2,
        )
    return Judgments.from_columns(queries, documents, np.concatenate(labels))


def _log(left: list[str], right: list[str], verdicts: np.ndarray) -> list[Verdict]:
    """Return verdicts, those on the same pair by different people."""
    earlier: Counter[frozenset[str]] = Counter()
    log = []
    for one, other, verdict in zip(left, right, verdicts.tolist(), strict=True):
        pair = frozenset((one, other))
        log.append(Verdict(one, other, Outcome(verdict), assessor=f"judge {earlier[pair]}"))
        earlier[pair] += 1
    return log
