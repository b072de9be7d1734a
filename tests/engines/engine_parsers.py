"""What engines without a server here compute from exports: their own classes, in a process of Java.

One process reads all exports of a test run; starting it takes seconds.
"""

from __future__ import annotations

import re
import select
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from podium.export.folder import ExportFolder
from podium.kernels import Doubles
from tests.engines.install import ENGINES, PARSERS
from tests.engines.java import java_home

_SECONDS = 300.0
"""For a large model on a busy machine."""


class RefusedError(Exception):
    """The engine does not take the files."""


class EngineParser:
    """The classes of an engine that read the files of an export and score rows.

    Args:
        name: ``elasticsearch-8``, ``elasticsearch-9`` or ``vespa``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._scratch = tempfile.TemporaryDirectory(prefix="podium-parser-")
        self._log = (Path(self._scratch.name) / "log").open("wb")

    def __enter__(self) -> Self:
        command = [
            str(java_home(21) / "bin/java"), "-Xmx512m", "-XX:TieredStopAtLevel=1",
            "-cp", f"{ENGINES / self.name}/*", PARSERS[self.name],
        ]  # fmt: skip
        # It ends with its standard input, so also when its parent is killed.
        self._process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate(timeout=_SECONDS)
        self._log.close()
        self._scratch.cleanup()

    def version(self) -> str:
        """Return the version of the engine's classes."""
        library = "searchlib" if self.name == "vespa" else "x-pack-core"
        (path,) = (ENGINES / self.name).glob(f"{library}-*.jar")
        return path.stem.removeprefix(f"{library}-")

    def score(self, export: ExportFolder, values: Doubles) -> Doubles:
        """Score rows; a RefusedError if the engine does not take the export."""
        return self.score_files(export.target_files(), export.engine_names, values)

    def score_files(
        self, files: dict[str, bytes], names: Sequence[str], values: Doubles, more: str = ""
    ) -> Doubles:
        """Score rows by the files of an export.

        Args:
            files: The files.
            names: The names of the features.
            values: The rows; NaN is absent.
            more: Other fields of Vespa's schema.
        """
        folder = Path(tempfile.mkdtemp(dir=self._scratch.name, prefix="export-"))
        if self.name == "vespa":
            names = self._write_application(folder, files, names, more)
        else:
            (folder / "model.json").write_bytes(files["model.json"])
        lines = ["\t".join(names)]
        # Java reads what Python writes, apart from the names of values that are not numbers.
        lines += ["\t".join(map(_written, row)) for row in values.astype(np.float32).tolist()]
        (folder / "rows.tsv").write_text("\n".join(lines))
        answer = self._answer(folder)
        if answer.startswith("refused: "):
            raise RefusedError(answer)
        return np.array(answer.split(), np.float64)

    def _write_application(
        self, folder: Path, files: dict[str, bytes], names: Sequence[str], more: str
    ) -> list[str]:
        """Write an application of Vespa; returns the rank features that rows have values of."""
        profile = files["rank-profile.sd"].decode()
        expressions = dict(re.findall(r"function (\w+)\(\) \{\s*expression: (.*?)\n", profile))
        fields = [
            f"    field {name} type float {{ indexing: attribute }}\n"
            for name in names
            if expressions[name] == f"attribute({name})"
        ]
        schema = f"schema rows {{\n  document rows {{\n{more}{''.join(fields)}  }}\n{profile}}}\n"
        (folder / "schemas").mkdir()
        (folder / "schemas/rows.sd").write_text(schema)
        (folder / "models").mkdir()
        (folder / "models/podium.json").write_bytes(files["model.json"])
        return [expressions[name] for name in names]

    def _answer(self, folder: Path) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{folder}\n".encode())
        line = b""
        while line != b"answered\n":  # what is logged comes before
            if not select.select([self._process.stdout], [], [], _SECONDS)[0]:
                self._process.kill()
                raise TimeoutError(f"{self.name} does not answer")
            line = self._process.stdout.readline()
            if not line:
                log = Path(self._log.name).read_text()
                raise RuntimeError(f"{self.name} ended:\n{log[-4000:]}")
        return (folder / "answer.txt").read_text()


def _written(value: float) -> str:
    return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
