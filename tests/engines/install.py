"""Fetch the search engines that tests run; ``make engines`` calls it.

Maven resolves the artifacts of each ``pom.xml`` beside this file; a file whose SHA-256 is not the
one in ``digests.sha256`` stops the installation. Not every registry carries the learning-to-rank
modules of OpenSearch and of Solr 9: they are compiled from their sources where
``PODIUM_OPENSEARCH_LTR_SOURCE`` and ``PODIUM_SOLR_SOURCE`` name Git repositories that have the
commits below.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from tests.engines.java import java_home

HERE = Path(__file__).parent
ENGINES = HERE.parents[1] / ".engines"
OPENSEARCH_VERSION = "3.8.0"
SOLR_VERSION = "8.11.4"
OPENSEARCH = ENGINES / "opensearch" / f"opensearch-{OPENSEARCH_VERSION}"
PLUGIN = ENGINES / "opensearch-ltr"
SOLR = ENGINES / "solr"
LTR_COMMIT = "8203333c611ec8fa710e52e5ec6e66960739e3c6"
"""The plugin for that version, in opensearch-project/opensearch-learning-to-rank-base."""
LTR_SOURCE = "PODIUM_OPENSEARCH_LTR_SOURCE"
SOLR_9 = ENGINES / "solr-9"
SOLR_COMMIT = "c135e6335c7158fa26e96b0dc386f825255b47c0"
"""The release 9.10.1, in apache/solr."""
SOLR_SOURCE = "PODIUM_SOLR_SOURCE"
_RESOLVE = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_STAMP = ".complete"
_DESCRIPTOR = f"""\
description=Learning to rank
version={OPENSEARCH_VERSION}.0
name=opensearch-ltr
classname=com.o19s.es.ltr.LtrQueryParserPlugin
java.version=21
opensearch.version={OPENSEARCH_VERSION}
custom.foldername=
extended.plugins=
has.native.controller=false
"""


class WrongFilesError(RuntimeError):
    """What was fetched is not what was pinned."""


def installed(name: str) -> bool:
    """Whether an engine is there in the version that its pom.xml and digests name."""
    stamp = ENGINES / name / _STAMP
    return stamp.is_file() and stamp.read_text() == _fingerprint(name)


def pinned(name: str, digests: str) -> dict[str, str]:
    """Return the SHA-256 of each file of an engine, by the file's name."""
    lines = (line.split() for line in digests.splitlines() if line and not line.startswith("#"))
    return {path.removeprefix(f"{name}/"): digest for digest, path in lines
            if path.startswith(f"{name}/")}  # fmt: skip


def check_digests(folder: Path, digests: dict[str, str]) -> None:
    """Raise an error unless a folder has exactly the pinned files, with the pinned bytes."""
    fetched = {each.name: _sha256(each) for each in folder.iterdir()}
    wrong = sorted(name for name, _ in fetched.items() ^ digests.items())
    if wrong:
        raise WrongFilesError(f"other files than pinned: {', '.join(dict.fromkeys(wrong))}")


def install(name: str, unpack: Callable[[Path, Path], None]) -> None:
    """Fetch, check and unpack an engine, unless it is there."""
    if installed(name):
        print(f"{name}: present")
        return
    print(f"{name}: fetching", flush=True)
    ENGINES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ENGINES) as temporary:
        fetched, ready = Path(temporary) / "fetched", Path(temporary) / "ready"
        ready.mkdir()
        _run("mvn", "-B", "-q", "-f", HERE / name / "pom.xml", _RESOLVE,
             f"-DoutputDirectory={fetched}", "-DincludeScope=runtime")  # fmt: skip
        check_digests(fetched, pinned(name, _digests()))
        unpack(fetched, ready)
        (ready / _STAMP).write_text(_fingerprint(name))
        shutil.rmtree(ENGINES / name, ignore_errors=True)
        ready.rename(ENGINES / name)


def unpack_opensearch(fetched: Path, ready: Path) -> None:
    """Unpack the server's archive."""
    with zipfile.ZipFile(fetched / f"opensearch-{OPENSEARCH_VERSION}.zip") as archive:
        archive.extractall(ready)
    for script in (ready / f"opensearch-{OPENSEARCH_VERSION}" / "bin").iterdir():
        script.chmod(0o755)  # zipfile drops it


def keep_jars(fetched: Path, ready: Path) -> None:
    """Keep the libraries as they are."""
    for each in fetched.iterdir():
        each.rename(ready / each.name)


def compile_plugin(source: Path) -> Callable[[Path, Path], None]:
    """Return what makes the plugin from its sources and the fetched libraries."""

    def compile_from(fetched: Path, ready: Path) -> None:
        code, classes = ready / "code", ready / "classes"
        _check_out(source, LTR_COMMIT, "src/main", code)
        main = code / "src/main"
        shutil.copytree(main / "resources", classes)
        # The plugin's own version of a library comes before the server's.
        libraries = [*sorted(fetched.glob("*.jar")), *sorted((OPENSEARCH / "lib").glob("*.jar"))]
        _compile(main / "java", classes, libraries, 21, ready / "ltr.jar")
        keep_jars(fetched, ready)
        shutil.copy(main / "plugin-metadata/plugin-security.policy", ready)
        (ready / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
        shutil.rmtree(code)
        shutil.rmtree(classes)

    return compile_from


def compile_solr_ltr(source: Path) -> Callable[[Path, Path], None]:
    """Return what makes the module from its sources, beside the fetched libraries."""

    def compile_from(fetched: Path, ready: Path) -> None:
        code, classes = ready / "code", ready / "classes"
        _check_out(source, SOLR_COMMIT, "solr/modules/ltr/src/java", code)
        _compile(code, classes, sorted(fetched.glob("*.jar")), 17, ready / "solr-ltr.jar")
        keep_jars(fetched, ready)
        shutil.rmtree(code)
        shutil.rmtree(classes)

    return compile_from


def main() -> int:
    """Install all that can be had."""
    install("opensearch", unpack_opensearch)
    install("solr", keep_jars)
    for name, variable, compile_with in (
        ("opensearch-ltr", LTR_SOURCE, compile_plugin),
        ("solr-9", SOLR_SOURCE, compile_solr_ltr),
    ):
        if source := os.environ.get(variable):
            install(name, compile_with(Path(source)))
        else:
            print(f"{name}: {'present' if installed(name) else f'set {variable} to compile it'}")
    return 0


def _check_out(source: Path, commit: str, path: str, into: Path) -> None:
    """Write a folder of a commit, whose hash is the digest of its content."""
    archive = subprocess.run(
        ["git", "-C", str(source), "archive", commit, path],
        check=True, capture_output=True, timeout=120,
    ).stdout  # fmt: skip
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(into, filter="data")


def _compile(code: Path, classes: Path, libraries: list[Path], release: int, jar: Path) -> None:
    tools = java_home(release) / "bin"
    _run(tools / "javac", "--release", release, "-nowarn", "-Xlint:none", "-proc:none",
         "-d", classes, "-cp", os.pathsep.join(map(str, libraries)),
         *sorted(code.rglob("*.java")))  # fmt: skip
    _run(tools / "jar", "-cf", jar, "-C", classes, ".")


def _digests() -> str:
    return (HERE / "digests.sha256").read_text()


def _fingerprint(name: str) -> str:
    parts = [(HERE / name / "pom.xml").read_text(), repr(pinned(name, _digests()))]
    parts += {"opensearch-ltr": [LTR_COMMIT, _DESCRIPTOR], "solr-9": [SOLR_COMMIT]}.get(name, [])
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"{words[:3]} failed:\n{(done.stdout + done.stderr)[-4000:]}")


if __name__ == "__main__":
    sys.exit(main())
