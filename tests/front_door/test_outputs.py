"""Results as tables: Arrow always, pandas if it is installed, HTML in notebooks."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import podium

QRELS = {"q1": {"a": 2, "b": 0}, "<q2>": {"a": 1, "b": 1, "c": 0}}
RUN = {"q1": {"b": 0.9, "a": 0.7}, "<q2>": {"a": 0.8, "c": 0.4}}
BASE = {"q1": {"a": 0.9, "b": 0.7}, "<q2>": {"c": 0.8, "b": 0.4}}


def test_evaluation() -> None:
    found = podium.evaluate(["RR", "P@2"], QRELS, RUN)
    expected = pd.DataFrame({"query_id": ["q1", "<q2>"], "RR": [0.5, 1.0], "P@2": [0.5, 0.5]})
    assert found.to_arrow().to_pydict() == expected.to_dict("list")
    frame = found.to_frame()
    assert frame.to_dict("list") == expected.to_dict("list")
    assert frame["RR"].mean() == found.means["RR"]


def test_queries_without_a_value_are_null() -> None:
    found = podium.evaluate(
        "RR", {"q": {"a": 0}, "p": {"a": 1}}, {"p": {"a": 1}}, conventions="ranx"
    )
    nan = np.isnan(found["RR"])
    column = found.to_arrow()["RR"]
    assert [value is None for value in column.to_pylist()] == nan.tolist()
    assert found.to_frame()["RR"].isna().tolist() == nan.tolist()


def test_comparison() -> None:
    found = podium.compare(["RR", "P@2"], QRELS, {"base": BASE, "new": RUN})
    frame = found.to_frame()
    assert frame["measure"].tolist() == ["RR", "RR", "P@2", "P@2"]
    assert frame["system"].tolist() == ["base", "new"] * 2
    assert frame["mean"].tolist() == [0.75, 0.75, 0.5, 0.5]
    new = found.to_arrow().to_pylist()[1]
    outcome = found.against_baseline["RR"]["new"]
    assert new["difference"] == 0.0 == outcome.difference.mean
    assert (new["wins"], new["ties"], new["losses"]) == (1, 0, 1)
    assert new["p_holm"] == outcome.corrected["randomization"]
    assert new["p_tukey"] == outcome.tukey
    assert frame["difference"].isna().tolist() == [True, False] * 2
    assert found.to_arrow().to_pylist()[0]["wins"] is None


def test_frames_need_pandas() -> None:
    code = """
import sys

class WithoutPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, WithoutPandas())
import podium

found = podium.evaluate("RR", {"q": {"a": 1}}, {"q": {"a": 1}})
print(found.to_arrow()["RR"][0].as_py())
found.to_frame()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "1.0\n"
    assert "pandas is not installed: pip install 'podium-rank[frames]'." in done.stderr


def test_notebooks_show_escaped_tables() -> None:
    evaluation = podium.evaluate("RR", QRELS, RUN)
    assert "<td>&lt;q2&gt;</td><td>1</td>" in evaluation._repr_html_()
    compared = podium.compare("RR", QRELS, {"<base>": BASE, "new": RUN})._repr_html_()
    assert "baseline &lt;base&gt;" in compared
    assert "<td>&lt;base&gt;</td><td>0.75</td>" in compared
    data = podium.Dataset.from_arrays(
        [[0.5, 1]], [2], qid=["<q>"], document_ids=["<d>"], feature_names=["<a>", "b"]
    )
    page = data._repr_html_()
    cells = ["&lt;q&gt;", "&lt;d&gt;", "2", "0.5", "1"]
    assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    assert "<th>&lt;a&gt;</th><th>b</th>" in page
    for html in (evaluation._repr_html_(), compared, page):
        assert not any(name in html for name in ("<q", "<base", "<d>", "<a>"))


@pytest.mark.parametrize(("rows", "more"), [(20, None), (23, "3 more rows")])
def test_long_evaluations_are_cut(rows: int, more: str | None) -> None:
    labels = np.tile([1, 0], rows)
    found = podium.evaluate("RR", labels, labels, group=[2] * rows)
    page = found._repr_html_()
    assert page.count("<tr>") == 21 + (more is not None)
    assert ("more rows" in page) == (more is not None)
    assert more is None or more in page
