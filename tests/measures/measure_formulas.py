"""The measures as their formulas, in plain Python over lists, to hold the compiled ones against.

A ranked list is a list of labels, best score first, with None for a document that was not judged;
a pool is the list of all labels that are known of the query.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

Label = float | None
Formula = Callable[[Sequence[Label], Sequence[float]], float]


def known(label: Label) -> float:
    return 0.0 if label is None else label


def relevant(label: Label, rel: float = 1.0) -> bool:
    return label is not None and label >= rel


def log2_discount(rank: int) -> float:
    return 1 / math.log2(1 + rank)


def exponential(label: float) -> float:
    return 2.0**label - 1


def dcg(
    labels: Sequence[Label],
    k: int | None = None,
    gain: Callable[[float], float] = exponential,
    discount: Callable[[int], float] = log2_discount,
) -> float:
    return sum(
        gain(known(label)) * discount(rank) for rank, label in enumerate(labels[:k], start=1)
    )


def ndcg(
    ranked: Sequence[Label],
    pool: Sequence[float],
    k: int | None = None,
    gain: Callable[[float], float] = exponential,
    discount: Callable[[int], float] = log2_discount,
) -> float:
    best = dcg(sorted(pool, reverse=True), k, gain, discount)
    return dcg(ranked, k, gain, discount) / best if best > 0 else 0.0


def precision(ranked: Sequence[Label], _pool: Sequence[float], k: int | None = None) -> float:
    size = len(ranked) if k is None else k
    return sum(map(relevant, ranked[:k])) / size if size else 0.0


def recall(ranked: Sequence[Label], pool: Sequence[float], k: int | None = None) -> float:
    total = sum(map(relevant, pool))
    return sum(map(relevant, ranked[:k])) / total if total else 0.0


def r_precision(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    total = sum(map(relevant, pool))
    return sum(map(relevant, ranked[:total])) / total if total else 0.0


def average_precision(
    ranked: Sequence[Label], pool: Sequence[float], k: int | None = None
) -> float:
    total = sum(map(relevant, pool))
    precisions = [
        sum(map(relevant, ranked[:rank])) / rank
        for rank, label in enumerate(ranked[:k], start=1)
        if relevant(label)
    ]
    return sum(precisions) / total if total else 0.0


def reciprocal_rank(ranked: Sequence[Label], _pool: Sequence[float], k: int | None = None) -> float:
    ranks = [rank for rank, label in enumerate(ranked[:k], start=1) if relevant(label)]
    return 1 / min(ranks) if ranks else 0.0


def success(ranked: Sequence[Label], _pool: Sequence[float], k: int | None = None) -> float:
    return float(any(map(relevant, ranked[:k])))


def judged(ranked: Sequence[Label], _pool: Sequence[float], k: int | None = None) -> float:
    shown = ranked[:k]
    return sum(label is not None for label in shown) / len(shown) if shown else 0.0


def rbp(ranked: Sequence[Label], _pool: Sequence[float], p: float) -> float:
    return (1 - p) * sum(p**index * relevant(label) for index, label in enumerate(ranked))


def graded_rbp(ranked: Sequence[Label], pool: Sequence[float], p: float) -> float:
    highest = max(pool, default=0)
    gains = [p**index * known(label) for index, label in enumerate(ranked)]
    return (1 - p) * sum(gains) / highest if highest else 0.0


def bpref(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    right = sum(map(relevant, pool))
    wrong = len(pool) - right
    total = 0.0
    for index, label in enumerate(ranked):
        if relevant(label):
            above = sum(other is not None and not relevant(other) for other in ranked[:index])
            total += 1 - min(above, right) / min(right, wrong) if above else 1
    return total / right if right else 0.0


def cascade(chances: Sequence[float]) -> float:
    return sum(
        chance / rank * math.prod(1 - other for other in chances[: rank - 1])
        for rank, chance in enumerate(chances, start=1)
    )


def err(
    ranked: Sequence[Label],
    pool: Sequence[float],
    k: int | None = None,
    highest: float | None = None,
) -> float:
    top = max([0.0, *pool]) if highest is None else highest
    return cascade([(2 ** known(label) - 1) / 2**top for label in ranked[:k]])


def top_k_labels(labels: Sequence[Label], pool: Sequence[float], k: int) -> list[float]:
    return [
        max(0.0, k - sum(other > label for other in pool))
        if label is not None and label > 0
        else 0.0
        for label in labels
    ]


def kndcg(ranked: Sequence[Label], pool: Sequence[float], k: int, cut: int | None = None) -> float:
    return ndcg(top_k_labels(ranked, pool, k), top_k_labels(pool, pool, k), cut)


def kerr(ranked: Sequence[Label], pool: Sequence[float], k: int, cut: int | None = None) -> float:
    return cascade([(2**label - 1) / 2**k for label in top_k_labels(ranked, pool, k)[:cut]])


def top_k_loss(ranked: Sequence[Label], pool: Sequence[float], k: int) -> float:
    padded = [known(label) for label in ranked] + [0.0] * k
    expected = sorted((known(label) for label in pool), reverse=True) + [0.0] * k
    return float(padded[:k] != expected[:k])


def unranked(ranked: Sequence[Label], pool: Sequence[float]) -> list[float]:
    """The labels of the pool that the list does not have."""
    rest = list(pool)
    for label in ranked:
        if label is not None:
            rest.remove(label)
    return rest


def wkt(ranked: Sequence[Label], pool: Sequence[float], k: int) -> float:
    """The least, over all true orders that the labels allow, of the weight of inverted pairs."""
    labels = [known(label) for label in ranked] + unranked(ranked, pool)
    missing = len(ranked)  # documents from here on are not in the list: below all, not ordered
    padding = max(k - missing, 0)  # and below the irrelevant documents that pad the list to k
    best = sorted(range(len(labels)), key=lambda index: -labels[index])
    # Among equal labels, documents that are not in the list come last.
    gains = [exponential(labels[index]) * log2_discount(rank) for rank, index in enumerate(best, 1)]
    total = sum(gains[: min(k, len(pool))])
    if total <= 0:
        return 1.0  # nDCG is 0 there
    return (
        sum(
            gain
            * (
                sum(
                    labels[other] < labels[index] and other < min(index, missing)
                    for other in range(len(labels))
                )
                + (padding if index >= missing else 0)
            )
            for gain, index in zip(gains[:k], best[:k], strict=True)
        )
        / total
    )


def compat(ranked: Sequence[Label], pool: Sequence[float], p: float) -> float:
    labels = [*ranked, *unranked(ranked, pool)]
    documents = [index for index, label in enumerate(labels) if relevant(label)]
    ideal = sorted(documents, key=lambda index: -known(labels[index]))
    listed = list(range(len(ranked)))
    depth = max(len(listed), len(ideal))

    def overlap(one: Sequence[int], other: Sequence[int]) -> float:
        return sum(
            p ** (i - 1) * len(set(one[:i]) & set(other[:i])) / i for i in range(1, depth + 1)
        )

    return overlap(listed, ideal) / overlap(ideal, ideal) if ideal else 0.0


def hits_of(labels: Sequence[Label]) -> int:
    return sum(map(relevant, labels))


def interpolated(ranked: Sequence[Label], pool: Sequence[float], recall: float) -> float:
    """The largest precision from the rank on that has a share of the relevant documents."""
    needed = int(recall * hits_of(pool) + 0.9)
    reached = [
        hits_of(ranked[:rank]) / rank
        for rank in range(1, len(ranked) + 1)
        if hits_of(ranked[:rank]) >= needed
    ]
    return max(reached, default=0.0) if hits_of(pool) else 0.0


def inferred(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    total = 0.0
    for rank, label in enumerate(ranked, start=1):
        if relevant(label):
            above = [other for other in ranked[: rank - 1] if other is not None]
            chance = (hits_of(above) + 1e-5) / (len(above) + 2e-5)
            total += 1 / rank + (rank - 1) / rank * (
                len(above) / (rank - 1) * chance if rank > 1 else 0
            )
    return total / hits_of(pool) if hits_of(pool) else 0.0


def smoothed(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    precisions = sum(
        hits_of(ranked[:rank]) / rank
        for rank, label in enumerate(ranked, start=1)
        if relevant(label)
    )
    return math.log((1 + precisions) / (1 + hits_of(pool) - precisions))


def binary_gain(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    gains = [
        1 / math.log2(2 + (index - hits_of(ranked[:index])))
        for index, label in enumerate(ranked)
        if relevant(label)
    ]
    return sum(gains) / hits_of(pool) if hits_of(pool) else 0.0


def normalized_gain(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    own = [exponential(known(label)) for label in ranked]
    ideal = [exponential(label) for label in sorted(pool, reverse=True)]
    costs = [max(each, 1.0) for each in ideal] + [1.0] * len(own)
    total = sum(
        gain / math.log2(2 + sum(costs[:rank]) - sum(own[:rank]))
        for rank, gain in enumerate(own, start=1)
    )
    return total / sum(ideal) if sum(ideal) else 0.0


def ndcg_at_relevant(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    ranks = [rank for rank, label in enumerate(ranked, start=1) if relevant(label)]
    missing = hits_of(pool) - len(ranks)
    total = sum(ndcg(ranked, pool, rank) for rank in ranks) + missing * ndcg(ranked, pool)
    return total / hits_of(pool) if hits_of(pool) else 0.0


def ndcg_at_levels(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    levels = sorted({label for label in pool if label > 0})
    ranks = [sum(label >= level for label in pool) for level in levels]
    values = [ndcg(ranked, pool, rank) for rank in ranks]
    if ranks and len(ranked) > max(ranks) + 1:
        values.append(ndcg(ranked, pool))
    return sum(values) / len(values) if values else 0.0


def set_f(ranked: Sequence[Label], pool: Sequence[float], beta: float) -> float:
    p, r = precision(ranked, pool), recall(ranked, pool)
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p else 0.0


def relative_precision(ranked: Sequence[Label], pool: Sequence[float], k: int) -> float:
    best = min(k, hits_of(pool))
    return hits_of(ranked[:k]) / best if best else 0.0


def multiple_of_r(ranked: Sequence[Label], pool: Sequence[float], multiple: float) -> float:
    cut = int(multiple * hits_of(pool) + 0.9)
    return hits_of(ranked[:cut]) / cut if cut and hits_of(pool) else 0.0


def residual(ranked: Sequence[Label], p: float) -> float:
    unknown = [p**index for index, label in enumerate(ranked) if label is None]
    return p ** len(ranked) + (1 - p) * sum(unknown) if unknown else 0.0


def utility(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    hits, size, total = hits_of(ranked), len(ranked), hits_of(pool)
    return 2 * hits - (size - hits) - 0.5 * (total - hits) + 0.1 * (100 + hits - size - total)


FORMULAS: dict[str, Formula] = {
    "IPrec": lambda ranked, pool: interpolated(ranked, pool, 0),
    "IPrec@0.4": lambda ranked, pool: interpolated(ranked, pool, 0.4),
    "AvgIPrec": lambda ranked, pool: (
        sum(interpolated(ranked, pool, tenth / 10) for tenth in range(11)) / 11
    ),
    "InfAP": inferred,
    "GMAP": average_precision,
    "GMbpref": bpref,
    "YAAP": smoothed,
    "BinGain": binary_gain,
    "NGain": normalized_gain,
    "RelNDCG": ndcg_at_relevant,
    "LevelNDCG": ndcg_at_levels,
    "SetAP": lambda ranked, pool: precision(ranked, pool) * recall(ranked, pool),
    "SetF": lambda ranked, pool: set_f(ranked, pool, 1),
    "SetF(beta=2)": lambda ranked, pool: set_f(ranked, pool, 2),
    "RelP": lambda ranked, pool: relative_precision(ranked, pool, len(ranked)),
    "RelP@3": lambda ranked, pool: relative_precision(ranked, pool, 3),
    "Rprec(multiple=0.4)": lambda ranked, pool: multiple_of_r(ranked, pool, 0.4),
    "Rprec(multiple=2)": lambda ranked, pool: multiple_of_r(ranked, pool, 2),
    "RBPResidual(p=0.7)": lambda ranked, _pool: residual(ranked, 0.7),
    "Unjudged": lambda ranked, _pool: ranked.count(None) / len(ranked) if ranked else 0.0,
    "Unjudged@3": lambda ranked, _pool: ranked[:3].count(None) / 3,
    "SetUtility(weights=(2, -1, -0.5, 0.1), collection=100)": utility,
    "NumQ": lambda _ranked, _pool: 1.0,
    "NumRet": lambda ranked, _pool: float(len(ranked)),
    "NumRel": lambda _ranked, pool: float(hits_of(pool)),
    "NumRelRet": lambda ranked, _pool: float(hits_of(ranked)),
    "NumNonrelRet": lambda ranked, _pool: float(
        sum(label is not None and not relevant(label) for label in ranked)
    ),
    "nDCG": ndcg,
    "nDCG@1": lambda ranked, pool: ndcg(ranked, pool, 1),
    "nDCG@3": lambda ranked, pool: ndcg(ranked, pool, 3),
    "nDCG(gains='linear')@4": lambda ranked, pool: ndcg(ranked, pool, 4, lambda label: label),
    "nDCG(gains=(0, 1, 5, 2, 9), discounts=(1, 0.5, 0.75))": lambda ranked, pool: uneven(
        ranked, pool
    ),
    "DCG@3": lambda ranked, _pool: dcg(ranked, 3),
    "DCG(discounts='reciprocal')": lambda ranked, _pool: dcg(
        ranked, discount=lambda rank: 1 / rank
    ),
    "P": precision,
    "P@3": lambda ranked, pool: precision(ranked, pool, 3),
    "P(rel=2)@2": lambda ranked, _pool: sum(relevant(each, 2) for each in ranked[:2]) / 2,
    "R": recall,
    "R@3": lambda ranked, pool: recall(ranked, pool, 3),
    "AP": average_precision,
    "AP@3": lambda ranked, pool: average_precision(ranked, pool, 3),
    "RR": reciprocal_rank,
    "RR@2": lambda ranked, pool: reciprocal_rank(ranked, pool, 2),
    "Rprec": r_precision,
    "bpref": bpref,
    "Success@2": lambda ranked, pool: success(ranked, pool, 2),
    "Judged": judged,
    "Judged@3": lambda ranked, pool: judged(ranked, pool, 3),
    "RBP(p=0.7)": lambda ranked, pool: rbp(ranked, pool, 0.7),
    "RBP(p=0.7)@2": lambda ranked, pool: rbp(ranked[:2], pool, 0.7),
    "GradedRBP(p=0.7)": lambda ranked, pool: graded_rbp(ranked, pool, 0.7),
    "ERR": err,
    "ERR@3": lambda ranked, pool: err(ranked, pool, 3),
    "ERR(max=5)@3": lambda ranked, pool: err(ranked, pool, 3, 5),
    "kNDCG(k=3)": lambda ranked, pool: kndcg(ranked, pool, 3),
    "kNDCG(k=2)@3": lambda ranked, pool: kndcg(ranked, pool, 2, 3),
    "kERR(k=3)": lambda ranked, pool: kerr(ranked, pool, 3),
    "kERR(k=4)@2": lambda ranked, pool: kerr(ranked, pool, 4, 2),
    "TopKLoss(k=2)": lambda ranked, pool: top_k_loss(ranked, pool, 2),
    "WKT(k=3)": lambda ranked, pool: wkt(ranked, pool, 3),
    "Compat(p=0.9)": lambda ranked, pool: compat(ranked, pool, 0.9),
}
"""A formula for each measure, under the default conventions."""


def uneven(ranked: Sequence[Label], pool: Sequence[float]) -> float:
    """nDCG with gains and discounts in no order: the ideal is the best of all orders.

    Documents that were ranked without a judgment can be put anywhere, too.
    """
    gains, discounts = {0: 0.0, 1: 1.0, 2: 5.0, 3: 2.0, 4: 9.0}, (1.0, 0.5, 0.75)

    def total(labels: Sequence[Label]) -> float:
        worth = [0.0 if label is None else gains[int(label)] for label in labels]
        return sum(gain * discount for gain, discount in zip(worth, discounts, strict=False))

    documents = [*pool, *[0.0] * (len(ranked) - len(pool))]
    size = min(len(documents), 3)
    best = max(total(order) for order in itertools.permutations(documents, size))
    return total(ranked) / best if best > 0 else 0.0
