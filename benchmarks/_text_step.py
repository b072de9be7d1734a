"""One step of training a cross-encoder in a process of its own: its memory and processor time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Step:
    """What a step took.

    Attributes:
        mebibytes: The most memory during the step beyond that before it.
        seconds: Processor time.
    """

    mebibytes: float
    seconds: float


def measure_step(checkpoint: str, method: str, documents: int, *, words: int) -> Step:
    """Measure a step on one query in a fresh process.

    Args:
        checkpoint: The folder of a checkpoint.
        method: ``podium`` (mini-batches of 8), ``graph`` (one graph of all documents),
            ``sentence-transformers`` (its LambdaLoss) or ``predict`` (scores alone).
        documents: The number of documents of the query.
        words: The number of words of a document.
    """
    done = subprocess.run(
        [sys.executable, "-m", __name__, checkpoint, method, str(documents), str(words)],
        stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    return Step(**json.loads(done.stdout.strip().splitlines()[-1]))


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


def _rows(documents: int, words: int) -> tuple[list[tuple[str, str]], Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    texts = [
        " ".join(f"w{number}" for number in rng.integers(0, 60, words)) for _ in range(documents)
    ]
    return [("w1 w2 w3", text) for text in texts], rng.integers(0, 4, documents)


def _prepare(method: str, checkpoint: str, pairs: Any, labels: Any) -> Any:
    """Return a function that computes the gradient once."""
    if method == "sentence-transformers":
        import torch
        from sentence_transformers.cross_encoder import CrossEncoder as PeerEncoder
        from sentence_transformers.cross_encoder.losses import LambdaLoss

        peer = PeerEncoder(checkpoint, num_labels=1, max_length=256, device="cpu")
        loss = LambdaLoss(peer, mini_batch_size=8)
        peer.train()
        queries, documents = [pairs[0][0]], [[text for _, text in pairs]]
        grades = [torch.tensor(labels, dtype=torch.float32)]
        return lambda: loss([queries, documents], grades).backward()
    from podium.losses import LambdaLoss as PodiumLoss
    from podium.rankers.text_encoder import load_cross_encoder, score_pairs
    from podium.rankers.text_training import add_gradients

    encoder = load_cross_encoder(checkpoint, 256)
    if method == "predict":
        return lambda: score_pairs(encoder, pairs, 8)
    encoder.train()
    size = len(pairs) if method == "graph" else 8
    return lambda: add_gradients(encoder, PodiumLoss(k=10), pairs, labels, size=size)


def _main() -> None:
    import ctypes
    import time

    import torch

    checkpoint, method, documents, words = sys.argv[1:]
    torch.set_num_threads(1)
    pairs, labels = _rows(int(documents), int(words))
    warm_pairs, warm_labels = _rows(4, int(words))
    _prepare(method, checkpoint, warm_pairs, warm_labels)()  # what is loaded and compiled once
    step = _prepare(method, checkpoint, pairs, labels)
    ctypes.CDLL(None).malloc_trim(0)  # what is free counts when it is used again
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before, started = _status("VmRSS"), time.process_time()
    step()
    seconds = time.process_time() - started
    print(json.dumps({"mebibytes": _status("VmHWM") - before, "seconds": seconds}))


if __name__ == "__main__":
    _main()
