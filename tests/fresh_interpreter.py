"""Code in an interpreter that has loaded nothing yet."""

import subprocess
import sys


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running code."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    return set(done.stdout.split())
