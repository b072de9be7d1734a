"""web/api-types.d.ts has the types of the judging API as it is now."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
GENERATOR = ROOT / "node_modules/.bin/openapi-typescript"


@pytest.mark.skipif(
    Version(version("fastapi")) < Version("0.162"),
    reason="made with a later FastAPI, which says more of errors",
)
def test_the_generated_types_are_up_to_date(tmp_path):
    if not GENERATOR.exists():
        if os.environ.get("CI"):
            pytest.fail("openapi-typescript is missing: npm ci")
        pytest.skip("needs openapi-typescript: npm ci")
    document = subprocess.run([sys.executable, WEB / "openapi.py"], capture_output=True, check=True)
    types = tmp_path / "api-types.d.ts"
    subprocess.run([GENERATOR, "--output", types], input=document.stdout, check=True)
    assert (WEB / "api-types.d.ts").read_text() == types.read_text(), "stale: run `make api-types`"
