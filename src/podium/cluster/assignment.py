"""Assignment of shards to workers: balanced by bytes, and moved from slow workers to fast ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

SLOW = 1.5
"""A worker is a straggler when it takes this many times as long as the median worker."""


def balance_by_bytes(sizes: Sequence[int], workers: int) -> list[list[int]]:
    """Divide shards among workers: the largest first, each to the least loaded worker.

    The most loaded worker has at most a third more than in the best division.

    Example:
        >>> balance_by_bytes([5, 1, 4, 2, 3], workers=2)
        [[0, 3, 1], [2, 4]]
    """
    shares: list[list[int]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for shard in sorted(range(len(sizes)), key=lambda shard: (-sizes[shard], shard)):
        least = loads.index(min(loads))
        shares[least].append(shard)
        loads[least] += sizes[shard]
    return shares


def reassign(
    shares: Mapping[int, Sequence[int]], orphans: Iterable[int], sizes: Sequence[int]
) -> dict[int, list[int]]:
    """Divide the shards of a lost worker among the others; returns the shards added to each.

    Example:
        >>> reassign({0: [0], 2: [1, 2]}, orphans=[3, 4], sizes=[5, 5, 5, 4, 2])
        {0: [3, 4]}
    """
    loads = {worker: sum(sizes[shard] for shard in share) for worker, share in shares.items()}
    assigned: dict[int, list[int]] = {}
    for shard in sorted(orphans, key=lambda shard: (-sizes[shard], shard)):
        least = min(loads, key=lambda worker: (loads[worker], worker))
        assigned.setdefault(least, []).append(shard)
        loads[least] += sizes[shard]
    return assigned


def find_move(
    shares: Mapping[int, Sequence[int]], seconds: Mapping[int, float], sizes: Sequence[int]
) -> tuple[int, int, int] | None:
    """Find a shard to move from a straggler: shard, slow worker, fast worker; None if none lags.

    The shard moved is the largest with which both would be done before the slow one is now.

    Example:
        >>> find_move({0: [0, 1], 1: [2], 2: [3]}, {0: 9.0, 1: 2.0, 2: 3.0}, sizes=[4, 2, 4, 4])
        (0, 0, 1)
        >>> find_move({0: [0], 1: [1]}, {0: 1.0, 1: 1.1}, sizes=[4, 4])
    """
    if len(seconds) < 2:
        return None
    slow = max(seconds, key=lambda worker: seconds[worker])
    quick = min(seconds, key=lambda worker: seconds[worker])
    others = [value for worker, value in seconds.items() if worker != slow]
    if seconds[slow] < SLOW * float(np.median(others)) or len(shares[slow]) < 2:
        return None
    load = {
        worker: max(1, sum(sizes[shard] for shard in share)) for worker, share in shares.items()
    }
    for shard in sorted(shares[slow], key=lambda shard: (-sizes[shard], shard)):
        after = seconds[quick] * (load[quick] + sizes[shard]) / load[quick]
        if after < seconds[slow]:
            return shard, slow, quick
    return None
