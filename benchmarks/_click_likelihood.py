"""The log-likelihood of click models on searches that they have not seen, beside CLAX."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks._click_coverage import Figure
from podium.clicks import ClickLog, SimulatedUser, fit_clicks, simulate_clicks
from podium.data import Dataset
from podium.kernels import Doubles, Ints

DEPTH = 8
_NOISE = 0.005
"""Nats per shown document; the standard error on the test searches is printed beside it."""


class _Rows(NamedTuple):
    """Searches as rectangles: a row for each search, a column for each rank."""

    query: Ints
    document: Ints
    clicked: Doubles


def likelihood_rows(quick: bool) -> tuple[list[Figure], list[str]]:
    """Return how far the log-likelihood of each model is below CLAX's on the same log."""
    if importlib.util.find_spec("clax") is None:
        return [], ["clax-models is not installed: log-likelihoods are not compared"]
    queries, searches = (30, 60) if quick else (200, 200)
    random = np.random.default_rng(61)
    attractive = random.beta(1, 3, queries * 12)
    order = attractive + 0.3 * random.standard_normal(len(attractive))
    data = Dataset.from_arrays(order[:, None], np.log2(1 + attractive), group=[12] * queries)
    figures, notes = [], []
    with tempfile.TemporaryDirectory() as folder:
        train, test = (
            simulate_clicks(
                data, f"{folder}/{seed}", user=SimulatedUser("pbm", noise=0.0), policy="1",
                searches=searches, depth=DEPTH, shuffled=0.4, random_state=seed,
            )
            for seed in (0, 1)
        )  # fmt: skip
        theirs = _clax(_rows(train), _rows(test), queries)
        for name in ("pbm", "pbm-em"):
            ours = _ours(train, name, _rows(test))
            gap = theirs - ours
            error = float(gap.std() / np.sqrt(len(gap)))
            notes.append(
                f"log-likelihood per shown document, {name}: {ours.mean():.4f}, CLAX "
                f"{theirs.mean():.4f}, difference {gap.mean():+.4f} (standard error {error:.4f})"
            )
            figures.append(
                Figure(f"{name}: log-likelihood below CLAX's", float(gap.mean()), _NOISE, False)
            )
    return figures, notes


def _rows(log: ClickLog) -> _Rows:
    parts = list(_blocks(log))
    return _Rows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _blocks(log: ClickLog) -> Iterator[tuple[Any, ...]]:
    for block in log.blocks(DEPTH):
        query = np.array(block.query_names.to_pylist(), int)[block.query]
        document = np.array(block.pair_documents.to_pylist(), int)[block.pair].reshape(-1, DEPTH)
        yield np.repeat(query[:, None], DEPTH, 1), document, block.clicked.reshape(-1, DEPTH) * 1.0


def _ours(train: ClickLog, name: Any, test: _Rows) -> Doubles:
    model = fit_clicks(train, name, depth=DEPTH)
    a, b = model.prior
    labels = np.full((test.query.max() + 1, 12), a / (a + b))
    table = model.labels()
    rows = np.array(table["query"].to_pylist(), int)
    labels[rows, np.array(table["document_id"].to_pylist(), int)] = table["label"].to_numpy()
    chance = np.clip(model.theta[:DEPTH] * labels[test.query, test.document], 1e-6, 1 - 1e-6)
    return _mean_by_search(chance, test.clicked)


def _mean_by_search(chance: Doubles, clicked: Doubles) -> Doubles:
    return np.asarray((clicked * np.log(chance) + (1 - clicked) * np.log1p(-chance)).mean(axis=1))


def _clax(train: _Rows, test: _Rows, queries: int) -> Doubles:
    """Fit CLAX's position-based model by full batches; return its log-likelihood by search."""
    import jax.numpy as jnp
    import optax
    from clax import PositionBasedModel
    from flax import nnx

    def batch(rows: _Rows) -> dict[str, Any]:
        shape = rows.clicked.shape
        return {
            "query_doc_ids": jnp.array(rows.query * 12 + rows.document),
            "positions": jnp.tile(jnp.arange(1, DEPTH + 1), (shape[0], 1)),
            "clicks": jnp.array(rows.clicked),
            "mask": jnp.ones(shape, bool),
        }

    model = PositionBasedModel(query_doc_pairs=queries * 12, positions=DEPTH, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.03), wrt=nnx.Param)
    content, held_out = batch(train), batch(test)

    @nnx.jit  # type: ignore[untyped-decorator]
    def step(model: Any, optimizer: Any, content: dict[str, Any]) -> Any:
        loss, slope = nnx.value_and_grad(lambda each: jnp.mean(each.compute_loss(content)))(model)
        optimizer.update(model, slope)
        return loss

    best = np.full(len(test.clicked), -np.inf)
    for number in range(600):
        step(model, optimizer, content)
        if number % 10 == 9:  # where it stopped early, in its favor, on the test searches
            chance = np.exp(np.asarray(model.predict_conditional_clicks(held_out), np.float64))
            value = _mean_by_search(np.clip(chance, 1e-6, 1 - 1e-6), test.clicked)
            best = max(best, value, key=lambda each: float(each.mean()))
    return np.asarray(best)
