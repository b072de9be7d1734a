"""Builds the scripts of Podium Studio's pages whenever the package is built or installed.

They come from web/ and from npm, and are never committed. The library needs none of them, so an
installation without Node.js goes on without; a wheel to publish is built with
PODIUM_REQUIRE_PAGES=1, which makes their absence an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "src/podium/studio/web/static/built"
REQUIRE = "PODIUM_REQUIRE_PAGES"


class WebBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs npm before the files of a wheel are gathered."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the scripts.

        Args:
            version: What is built: ``standard`` or ``editable``.
            build_data: What the wheel gets beyond the files that Git knows.
        """
        build_data["artifacts"].append(f"/{BUILT}/*.js")
        problem = self._build()
        if problem is None:
            return
        if os.environ.get(REQUIRE):
            raise RuntimeError(f"{problem}: install Node.js 18 or later and build again.")
        if list(Path(self.root, BUILT).glob("*.js")):
            self.app.display_warning(f"{problem}: Podium Studio keeps the scripts built before.")
        else:
            self.app.display_warning(
                f"{problem}: Podium Studio's pages have no scripts. All else works; for the "
                "studio, install Node.js 18 or later and install Podium again."
            )

    def _build(self) -> str | None:
        """Run npm; return what is wrong if the scripts could not be built."""
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            return "Node.js and npm are missing"
        for step in (["ci"], ["run", "build"]):
            done = subprocess.run([npm, *step], cwd=self.root, check=False)  # noqa: S603 - npm
            if done.returncode:
                return f"npm {' '.join(step)} failed"
        return None
