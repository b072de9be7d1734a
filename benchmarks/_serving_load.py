"""Load from wrk, whose C threads take little of the processors that the services run on."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_SCRIPT = """\
wrk.method = "POST"
local file = assert(io.open("{body}", "rb"))
wrk.body = file:read("*a")
file:close()
"""


def has_wrk() -> bool:
    """Return whether wrk is installed."""
    return shutil.which("wrk") is not None


def requests_per_second(
    url: str, body: bytes, headers: Mapping[str, str], *, seconds: int, connections: int = 8
) -> float:
    """Post a body over connections that are kept, each without pause, for so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "body").write_bytes(body)
        script = Path(folder) / "post.lua"
        script.write_text(_SCRIPT.format(body=Path(folder) / "body"))
        options = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
        done = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), *options, url],
            stdout=subprocess.PIPE, text=True, check=True, timeout=seconds + 60,
        )  # fmt: skip
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(done.stdout)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    assert rate is not None
    return float(rate[1])
