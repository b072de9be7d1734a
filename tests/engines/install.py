"""Fetch the search engines that tests run; ``make engines`` calls it.

Maven resolves the artifacts of each ``pom.xml`` beside this file; a file whose SHA-256 is not the
one in ``digests.sha256`` stops the installation. No registry carries the learning-to-rank modules
of OpenSearch and of Solr 9: they are compiled from archives of their sources in
``../shared/engines``, or in the folder that ``PODIUM_ENGINE_SOURCES`` names. With ``CI`` set, an
engine that cannot be installed is an error.

Of Elasticsearch and Vespa only the libraries are fetched that read a model and score with it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
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
SOLR_9 = ENGINES / "solr-9"
SOURCES = Path(os.environ.get("PODIUM_ENGINE_SOURCES", HERE.parents[2] / "shared" / "engines"))
LTR_SOURCE = "opensearch-ltr-3.8.0.0.tar.gz"
"""``src/main`` of opensearch-project/opensearch-learning-to-rank-base, commit 8203333c611e."""
SOLR_SOURCE = "solr-ltr-9.10.1.tar.gz"
"""``solr/modules/ltr/src/java`` of apache/solr, commit c135e6335c71."""
PARSERS = {
    "elasticsearch-8": "ElasticsearchScores",
    "elasticsearch-9": "ElasticsearchScores",
    "vespa": "VespaScores",
}
"""The programs in ``parsers`` that read exports with an engine's own classes, by its name."""
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


def compile_plugin(fetched: Path, ready: Path) -> None:
    """Make OpenSearch's plugin from its sources and the fetched libraries."""
    code, classes = ready / "code", ready / "classes"
    unpack_source(SOURCES / LTR_SOURCE, code)
    main = code / "src/main"
    shutil.copytree(main / "resources", classes)
    # The plugin's own version of a library comes before the server's.
    libraries = [*sorted(fetched.glob("*.jar")), *sorted((OPENSEARCH / "lib").glob("*.jar"))]
    _compile(sorted((main / "java").rglob("*.java")), classes, libraries, 21, ready / "ltr.jar")
    keep_jars(fetched, ready)
    shutil.copy(main / "plugin-metadata/plugin-security.policy", ready)
    (ready / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
    shutil.rmtree(code)
    shutil.rmtree(classes)


def compile_solr_ltr(fetched: Path, ready: Path) -> None:
    """Make Solr's module from its sources, beside the fetched libraries."""
    code, classes = ready / "code", ready / "classes"
    unpack_source(SOURCES / SOLR_SOURCE, code)
    sources = sorted(code.rglob("*.java"))
    _compile(sources, classes, sorted(fetched.glob("*.jar")), 17, ready / "solr-ltr.jar")
    keep_jars(fetched, ready)
    shutil.rmtree(code)
    shutil.rmtree(classes)


def compile_parser(fetched: Path, ready: Path, name: str) -> None:
    """Compile the program that reads exports with an engine's libraries, beside them."""
    classes = ready / "classes"
    code = _parser_code(name)
    _compile(code, classes, sorted(fetched.glob("*.jar")), 21, ready / "parser.jar")
    keep_jars(fetched, ready)
    shutil.rmtree(classes)


def _parser_code(name: str) -> list[Path]:
    return [HERE / "parsers" / f"{each}.java" for each in ("FolderScores", PARSERS[name])]


def unpack_source(archive: Path, into: Path) -> None:
    """Unpack an archive of sources, if the SHA-256 of what was compressed is the pinned one.

    ``git archive --format=tar COMMIT LICENSE.txt NOTICE.txt FOLDER`` writes the same bytes
    everywhere, while every version of gzip compresses them in its own way.
    """
    content = gzip.decompress(archive.read_bytes())
    if hashlib.sha256(content).hexdigest() != pinned("sources", _digests())[archive.name]:
        raise WrongFilesError(f"other bytes than pinned: {archive}")
    with tarfile.open(fileobj=BytesIO(content)) as files:
        files.extractall(into, filter="data")


def main() -> int:
    """Install every engine; return 1 where one is missing and ``CI`` is set."""
    install("opensearch", unpack_opensearch)
    install("solr", keep_jars)
    for name in PARSERS:
        install(name, partial(compile_parser, name=name))
    missing = 0
    for name, archive, compile_from in (
        ("opensearch-ltr", LTR_SOURCE, compile_plugin),
        ("solr-9", SOLR_SOURCE, compile_solr_ltr),
    ):
        if installed(name) or (SOURCES / archive).is_file():
            install(name, compile_from)
        else:
            missing += 1
            print(f"{name}: not installed, {SOURCES / archive} is missing; its tests cannot run")
    return int(bool(missing and os.environ.get("CI")))


def _compile(
    code: list[Path], classes: Path, libraries: list[Path], release: int, jar: Path
) -> None:
    tools = java_home(release) / "bin"
    _run(tools / "javac", "--release", release, "-nowarn", "-Xlint:none", "-proc:none",
         "-d", classes, "-cp", os.pathsep.join(map(str, libraries)), *code)  # fmt: skip
    _run(tools / "jar", "-cf", jar, "-C", classes, ".")


def _digests() -> str:
    return (HERE / "digests.sha256").read_text()


def _fingerprint(name: str) -> str:
    parts = [(HERE / name / "pom.xml").read_text(), repr(pinned(name, _digests()))]
    sources = pinned("sources", _digests())
    if name in PARSERS:
        parts += [path.read_text() for path in _parser_code(name)]
    parts += {
        "opensearch-ltr": [sources[LTR_SOURCE], _DESCRIPTOR],
        "solr-9": [sources[SOLR_SOURCE]],
    }.get(name, [])
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
