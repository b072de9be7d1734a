"""What is loaded: ``import podium`` brings itself alone, and evaluating files does without pandas.

How long that takes is counted in modules: seconds depend on what else the machine does.
"""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fresh_interpreter import loaded


def test_import_loads_nothing_but_itself() -> None:
    brought = loaded("import podium") - loaded("pass")
    packages = {name.partition(".")[0] for name in brought} - set(sys.stdlib_module_names)
    assert packages == {"podium", "lazy_loader"}
    # Parts are loaded when they are asked for.
    assert {name for name in brought if name.startswith("podium")} == {"podium"}


def test_evaluating_files_does_without_pandas(tmp_path: Path) -> None:
    """PyArrow's own conversions import it where it is installed, which takes half a second."""
    pytest.importorskip("pandas")
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    (tmp_path / "run").write_text("1 Q0 b 1 2.0 x\n1 Q0 a 2 1.0 x\n2 Q0 a 1 1.0 x\n")
    table = {"query_id": ["1", "1"], "label": [1, 0], "score": [0.5, 0.7]}
    pq.write_table(pa.table(table), tmp_path / "scored.parquet")
    code = f"""
import os; os.chdir({str(tmp_path)!r})
from podium.measures import evaluate, evaluate_table
assert evaluate("RR", "qrels", "run").means["RR"] == 0.5
assert evaluate_table("RR", "scored.parquet").means["RR"] == 0.5"""
    assert not {"pandas", "pyarrow.pandas_compat"} & loaded(code)
