import numpy as np
import pytest
import torch

from podium.data import write_shards
from podium.losses.names import parse_loss
from podium.measures import evaluate
from podium.rankers import NeuralRanker, RankingLoss
from tests.rankers.made_up import made_up


def test_the_gradient_in_torch_is_the_losses_own() -> None:
    data = made_up(4)
    loss = parse_loss("PairLogistic(k=5)")
    start = np.random.default_rng(0).normal(size=data.rows)
    scores = torch.tensor(start, requires_grad=True)
    value = RankingLoss(loss)(scores, torch.tensor(data.labels), data.offsets)
    (3 * value).backward()
    expected = loss.evaluate(start, data.labels, data.offsets)
    assert float(value.detach()) == pytest.approx(expected.total / 4)
    np.testing.assert_allclose(scores.grad.numpy(), 3 * expected.gradient / 4)


def test_autograd_agrees_with_finite_differences() -> None:
    data = made_up(2, 6)
    criterion = RankingLoss("ListMLE(k=3)")
    start = np.random.default_rng(0).normal(size=data.rows)
    scores = torch.tensor(start, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda given: criterion(given, torch.tensor(data.labels), data.offsets), scores
    )


def test_any_module_with_a_score_per_document_can_be_trained() -> None:
    torch.manual_seed(0)
    data = made_up()
    module = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    criterion = RankingLoss("ListMLE(k=5)")
    rows, labels = torch.tensor(data.features), torch.tensor(data.labels)
    values = []
    for _ in range(40):
        optimizer.zero_grad()
        value = criterion(module(rows), labels, data.offsets)
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    assert values[-1] < 0.9 * values[0]


@pytest.mark.parametrize("hidden_layer_sizes", [(), (16,), (16, 8)])
def test_networks_of_any_depth_learn(hidden_layer_sizes: tuple[int, ...]) -> None:
    train, test = made_up(60), made_up(30, seed=1)
    ranker = NeuralRanker(
        "ListMLE(k=5)", hidden_layer_sizes=hidden_layer_sizes, epochs=40, learning_rate=0.01
    )
    ranker.fit(train, eval_set=test)
    learned = evaluate("nDCG@5", test, ranker.predict(test)).means
    assert next(iter(learned.values())) > 0.8


def test_features_of_any_scale_and_missing_ones(tmp_path) -> None:
    from dataclasses import replace

    data = made_up()
    scaled = data.features * np.float32([1e6, 1e-6, 1, 1, 1, 0]) + np.float32(100)
    scaled[::7, 2] = np.nan
    data = replace(data, features=scaled)
    one = NeuralRanker("ListMLE(k=5)", epochs=2, batch_queries=1000).fit(data)
    assert np.isfinite(one.predict(data)).all()
    shards = write_shards(data, tmp_path / "shards")
    other = NeuralRanker("ListMLE(k=5)", epochs=2, batch_queries=1000).fit(shards)
    np.testing.assert_allclose(one.predict(data), other.predict(data), rtol=1e-5)


def test_equal_documents_have_equal_scores_at_any_position_of_any_batch() -> None:
    random = np.random.default_rng(0)
    ranker = NeuralRanker(hidden_layer_sizes=[24, 9], epochs=1).fit(made_up(4))
    for _ in range(300):
        rows = random.normal(size=(random.integers(2, 40), 6)).astype(np.float32)
        one, other = random.choice(len(rows), 2, replace=False)
        rows[one] = rows[other]
        scores = ranker.predict(rows)
        assert scores[one] == scores[other] == ranker.predict(rows[: 1 + one])[one]
