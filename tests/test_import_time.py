"""``import podium`` stays light: it loads itself and the standard library, and nothing else.

How long that takes is counted in modules: seconds depend on what else the machine does.
"""

import subprocess
import sys


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running code."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    return set(done.stdout.split())


def test_import_loads_nothing_but_itself() -> None:
    brought = loaded("import podium") - loaded("pass")
    packages = {name.partition(".")[0] for name in brought} - set(sys.stdlib_module_names)
    assert packages == {"podium"}
    # Parts are loaded when they are asked for.
    assert {name for name in brought if name.startswith("podium")} == {"podium"}
