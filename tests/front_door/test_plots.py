"""``.plot()``: pictures of rankers and comparisons, as SVG."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import podium
from podium.rankers.base import NotFittedError

SVG = "{http://www.w3.org/2000/svg}"
RNG = np.random.default_rng(2)
NAMES = ["bm25", "<b>clicks</b>", "age & size"]
X = RNG.random((200, 3))
Y = np.digitize(2 * X[:, 0] - X[:, 1], [0.2, 0.8])
DATA = podium.Dataset.from_arrays(X, Y, group=[20] * 10, feature_names=NAMES)


def picture(figure: Any) -> ElementTree.Element:
    """The picture as XML: what is not escaped is not well-formed, or an element of its own."""
    assert figure._repr_html_() == figure._repr_svg_() == figure.svg
    root = ElementTree.fromstring(figure.svg)
    assert root.tag == f"{SVG}svg"
    assert words(root)[0] == figure.title
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        *("svg", "style", "text", "line", "rect", "polyline", "title"),
    }
    return root


def words(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_learning_curve() -> None:
    ranker = podium.TreeRanker(n_estimators=7, min_child_samples=5).fit(DATA, eval_set=DATA)
    values = ranker.evals_result_["valid_0"]["nDCG@10"]
    figure = ranker.plot()
    root = picture(figure)
    (line,) = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert len(points) == 7
    heights = -np.array(points)[:, 1]  # down is larger
    assert np.corrcoef(heights, values)[0, 1] > 0.999
    best = int(np.argmax(values))
    shown = f"best {values[best]:.4f} at step {best + 1}"
    assert figure.title == f"nDCG@10 of the validation queries: {shown}"
    assert "step" in words(root)


def test_importance_of_trees_and_weights_of_linear_rankers() -> None:
    ranker = podium.TreeRanker(n_estimators=7, min_child_samples=5).fit(DATA)
    root = picture(ranker.plot("importance"))
    order = np.argsort(-ranker.feature_importances_, kind="stable")
    shown = [text for text in words(root) if text in NAMES]
    assert shown == [NAMES[index] for index in order]
    widths = [float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect")]
    ratios = np.array(widths) / widths[0]
    values = ranker.feature_importances_[order]
    assert np.allclose(ratios, values / values[0], atol=0.001)

    linear = podium.LinearRanker().fit(DATA)
    bars = list(picture(linear.plot("importance")).iter(f"{SVG}rect"))
    order = np.argsort(-np.abs(linear.coef_))
    titles = [bar.findtext(f"{SVG}title") for bar in bars]
    assert titles == [f"{NAMES[index]}: {linear.coef_[index]:+.6g}" for index in order]
    colors = {
        linear.coef_[index] > 0: bar.attrib["fill"] for index, bar in zip(order, bars, strict=True)
    }
    assert len(set(colors.values())) == len(colors) == 2


def test_many_features_are_cut() -> None:
    wide = np.hstack([X, RNG.random((200, 40))])
    figure = podium.LinearRanker().fit(wide, Y, group=[20] * 10).plot("importance")
    assert figure.title == "Weights of features: 25 largest of 43"
    assert len(list(picture(figure).iter(f"{SVG}rect"))) == 25


def test_differences_of_a_comparison(tmp_path: Path) -> None:
    truth = {f"<q{n}>": {"a": 1, "b": 0} for n in range(6)}
    old = {query: {"a": 1, "b": 2} for query in truth}
    new = {query: {"a": n % 3, "b": 1} for n, query in enumerate(truth)}
    compared = podium.compare(["RR", "AP"], truth, {"<old>": old, "new": new, "same": old})
    figure = compared.plot()
    assert repr(figure) == "Figure('RR: new against <old>')"
    titles = [bar.findtext(f"{SVG}title") for bar in picture(figure).iter(f"{SVG}rect")]
    values = compared.values["RR"][:, 1] - compared.values["RR"][:, 0]
    order = np.argsort(-values, kind="stable")
    assert titles == [f"{compared.query_ids[n]}: {values[n]:+.4f}" for n in order]
    flat = picture(compared.plot("map", "same"))
    assert {bar.findtext(f"{SVG}title")[-7:] for bar in flat.iter(f"{SVG}rect")} == {"+0.0000"}
    figure.save(tmp_path / "differences.svg")
    text = (tmp_path / "differences.svg").read_text(encoding="utf-8")
    assert text == figure.svg + "\n"
    assert re.match(r"<svg xmlns='http://www.w3.org/2000/svg' width='380' height='248' ", text)


def test_refused(tmp_path: Path) -> None:
    ranker = podium.LinearRanker().fit(DATA)
    truth = {"q": {"a": 1}}
    compared = podium.compare("RR", truth, {"old": truth, "new": truth})
    figure = compared.plot()
    kind: Any = "tree"
    cases: list[tuple[Any, str]] = [
        (ranker.plot, "Fit with an eval_set"),
        (lambda: ranker.plot(kind), "Give 'learning curve' or 'importance'"),
        (lambda: podium.BoostedRanker().fit(DATA).plot("importance"), "has no importance"),
        (lambda: compared.plot("AP"), "AP was not compared. There are: RR."),
        (lambda: compared.plot(system="newer"), "There is no system to draw 'newer'"),
        (lambda: compared.plot(system="old"), "There is no system to draw 'old'"),
        (lambda: figure.save(tmp_path / "a.png"), "Let it end in .svg"),
    ]
    for call, message in cases:
        with pytest.raises(podium.ArgumentError) as caught:
            call()
        assert message in str(caught.value)
    with pytest.raises(NotFittedError):
        podium.LinearRanker().plot()
