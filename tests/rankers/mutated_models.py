"""Loads an engine's model many times, each time changed at random; prints refused and loaded."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import numpy as np

from podium.errors import DataError
from podium.rankers.engines import ENGINES

_NUMBER = re.compile(rb"-?\d+(\.\d+)?")
_ODD = [b"", b"-1", b"0", b"1", b"7", b"65536", b"2147483647", b"-2147483648", b"4294967296",
        b"99999999999999999999", b"nan", b"inf", b"1e308", b"x"]  # fmt: skip


def changed(model: bytes, draw: random.Random) -> bytes:
    kind = draw.randrange(4)
    if kind == 0:
        found = draw.choice(list(_NUMBER.finditer(model)))
        return model[: found.start()] + draw.choice(_ODD) + model[found.end() :]
    place = draw.randrange(len(model))
    if kind == 1:
        return model[:place] + bytes([draw.randrange(256)]) + model[place + 1 :]
    end = min(len(model), place + draw.randrange(1, 200))
    return model[:place] + (b"" if kind == 2 else 2 * model[place:end]) + model[end:]


def main(name: str, path: str, times: str) -> None:
    model, draw = Path(path).read_bytes(), random.Random(5)
    rows = np.random.default_rng(0).normal(size=(50, 200)).astype(np.float32)
    refused = loaded = 0
    for _ in range(int(times)):
        try:
            booster = ENGINES.named(name).load(changed(model, draw))
        except DataError:
            refused += 1
            continue
        loaded += 1
        width = booster.model.num_feature() if name == "lightgbm" else booster.model.num_features()
        booster.predict(rows[:, :width])
    print(refused, loaded)


if __name__ == "__main__":
    main(*sys.argv[1:])
