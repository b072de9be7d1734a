"""Builds the scripts of Podium Studio's pages whenever the package is built or installed.

They come from web/ and from npm, and are never committed. A wheel must have them; an editable
install without npm goes on, since most of Podium needs no page.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "src/podium/studio/web/static/built"


class WebBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs npm before the files of a wheel are gathered."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the scripts.

        Args:
            version: What is built: ``standard`` or ``editable``.
            build_data: What the wheel gets beyond the files that Git knows.
        """
        build_data["artifacts"].append(f"/{BUILT}/*.js")
        npm = shutil.which("npm")
        if npm is not None:
            for step in (["ci"], ["run", "build"]):
                subprocess.run([npm, *step], cwd=self.root, check=True)  # noqa: S603 - npm
        elif version == "editable":
            self.app.display_warning(
                "npm is missing, so the pages of Podium Studio have no scripts. "
                "Install Node.js 18 or later, then run: make web"
            )
        else:
            raise RuntimeError(
                "npm is missing, and a wheel needs the scripts of Podium Studio's pages: "
                "install Node.js 18 or later and build again."
            )
