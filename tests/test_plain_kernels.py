"""Kernels as plain Python: what NUMBA_DISABLE_JIT gives is what compiled code gives."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

CODE = """
import io, json, warnings
import numpy as np
warnings.simplefilter("error")
from podium.data import read_letor
from podium.losses.names import parse_loss
from podium.measures import evaluate

random = np.random.default_rng(0)
sizes = np.array([3, 1, 8, 12])
labels = random.integers(0, 5, sizes.sum())
labels[0] = 120  # 2^120 is a double, and no float32
scores = random.integers(0, 9, sizes.sum()) / 4  # with ties
arrays = {"truth": labels, "ranking": scores, "group": sizes}
names = ["nDCG@5", "ERR@5", "AP", "bpref", "RBP", "WKT", "kNDCG(k=3)@5", "Judged@3"]
values = {repr(name): found.tolist() for name, found in evaluate(names, **arrays).values.items()}
offsets = np.concatenate(([0], np.cumsum(sizes)))
small = np.minimum(labels, 4).astype(np.float64)
for name in ["ListMLE(k=3)", "ListNet()", "PairHinge(k=3)", "LambdaLoss()"]:
    found = parse_loss(name).evaluate(scores, small, offsets)
    values[name] = [found.values.tolist(), found.gradient.tolist()]
text = b"2 qid:1 1:0.123456789 2:-7.5e-3\\n0 qid:1 1:12345678901234567890 2:0.25\\n"
read = read_letor(io.BytesIO(text))
values["read"] = read.features.tolist()
print(json.dumps(values))
"""


def run(disabled: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_plain_python_gives_what_compiled_code_gives() -> None:
    compiled, plain = run("0"), run("1")
    assert plain.keys() == compiled.keys()
    for name, values in compiled.items():
        for ours, theirs in zip(plain[name], values, strict=True):  # type: ignore[call-overload]
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15, err_msg=name)
