"""Which worker holds which shards: by bytes, and moved from slow workers to quick ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

SLOW = 1.5
"""A worker is a straggler when it takes so many times as long as the median one."""


def balance_by_bytes(sizes: Sequence[int], workers: int) -> list[list[int]]:
    """Divide shards among workers: the largest first, each to whoever has least so far.

    The fullest worker has at most a third more than the best division gives it.

    Example:
        >>> balance_by_bytes([5, 1, 4, 2, 3], workers=2)
        [[0, 3, 1], [2, 4]]
    """
    shares: list[list[int]] = [[] for _ in range(workers)]
    loads = [0] * workers
    for place in sorted(range(len(sizes)), key=lambda place: (-sizes[place], place)):
        least = loads.index(min(loads))
        shares[least].append(place)
        loads[least] += sizes[place]
    return shares


def reassign(
    shares: Mapping[int, Sequence[int]], orphans: Iterable[int], sizes: Sequence[int]
) -> dict[int, list[int]]:
    """Divide the shards of a lost worker among those that are left; gives what each gets.

    Example:
        >>> reassign({0: [0], 2: [1, 2]}, orphans=[3, 4], sizes=[5, 5, 5, 4, 2])
        {0: [3, 4]}
    """
    loads = {worker: sum(sizes[place] for place in share) for worker, share in shares.items()}
    given: dict[int, list[int]] = {}
    for place in sorted(orphans, key=lambda place: (-sizes[place], place)):
        least = min(loads, key=lambda worker: (loads[worker], worker))
        given.setdefault(least, []).append(place)
        loads[least] += sizes[place]
    return given


def find_move(
    shares: Mapping[int, Sequence[int]], seconds: Mapping[int, float], sizes: Sequence[int]
) -> tuple[int, int, int] | None:
    """Which shard to move from which worker to which, if one lags behind: None if none does.

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
        worker: max(1, sum(sizes[place] for place in share)) for worker, share in shares.items()
    }
    for place in sorted(shares[slow], key=lambda place: (-sizes[place], place)):
        after = seconds[quick] * (load[quick] + sizes[place]) / load[quick]
        if after < seconds[slow]:
            return place, slow, quick
    return None
