"""ranx's tuned fusion, in a process of its own: without Numba's compiler, which takes minutes."""

from __future__ import annotations

import json
import sys
from typing import Any

Runs = dict[str, dict[str, float]]


def fused(qrels: Runs, runs: list[Runs], method: str, parts: list[list[str]]) -> list[Runs]:
    """Return each part's queries, fused by what ranx chooses on all other queries."""
    import ranx

    results = []
    everything = {query for part in parts for query in part}
    for part in parts:
        # The last part may be all queries: then they choose for themselves.
        others = sorted(everything.difference(part)) or sorted(everything)
        judged = {query: {d: int(grade) for d, grade in qrels[query].items()} for query in others}
        chosen = ranx.optimize_fusion(
            qrels=ranx.Qrels(judged),
            runs=[ranx.Run({query: run[query] for query in others}) for run in runs],
            norm="min-max" if method == "wsum" else None,
            method=method,
            metric="ndcg@10",
        )
        result: Any = ranx.fuse(
            runs=[ranx.Run({query: run[query] for query in part}) for run in runs],
            norm="min-max" if method == "wsum" else None,
            method=method,
            params=chosen,
        )
        results.append(result.to_dict())
    return results


if __name__ == "__main__":
    print(json.dumps(fused(**json.load(sys.stdin)), default=float))
