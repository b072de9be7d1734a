"""Fit a text ranker, here or as ``python -m tests.rankers.fit_text CONFIG.json RANK``.

With ``world`` in the configuration the process is one of several, which train together; with
``killed_at`` it kills itself in that epoch, before the epoch is saved.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from podium.rankers import TextRanker
from tests.rankers.tiny_bert import word_task


def fit_text(checkpoint: str, parameters: dict[str, Any], killed_at: int | None = None) -> Any:
    """Return the scores of the training rows."""
    pairs, labels, ids = word_task(7, 5)

    def follow(step: int, _loss: float, _value: float | None) -> None:
        if step == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    ranker = TextRanker(checkpoint, **parameters)
    validation: dict[str, Any] = {"eval_set": [(pairs, labels)], "eval_qid": [ids]}
    shown = np.arange(len(pairs)) * 7 % 5  # offsets are summed over processes, and kept, too
    ranker.fit(pairs, labels, qid=ids, position=shown, **validation, progress=follow)
    return ranker.predict(pairs)


def main() -> None:
    config, rank = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    torch.set_num_threads(1)
    if config["world"] > 1:
        dist.init_process_group(
            "gloo", init_method=f"file://{config['meeting']}", rank=rank, world_size=config["world"]
        )
    scores = fit_text(config["checkpoint"], config["parameters"], config["killed_at"])
    np.save(f"{config['output']}-{rank}.npy", scores)
    if config["world"] > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
