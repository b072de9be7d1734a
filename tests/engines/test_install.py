"""What `make engines` accepts: exactly the pinned files, with the pinned bytes."""

from __future__ import annotations

import gzip
import hashlib
import re

import pytest

from tests.engines import install as engine_install
from tests.engines.install import (
    HERE,
    LTR_SOURCE,
    OPENSEARCH_VERSION,
    PARSERS,
    SOLR_SOURCE,
    SOLR_VERSION,
    WrongFilesError,
    check_digests,
    main,
    pinned,
    unpack_source,
)
from tests.engines.java import NoJavaError, java_home

CONTENTS = {"a.jar": b"one", "b.jar": b"two"}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


@pytest.fixture
def fetched(tmp_path):
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_the_pinned_files_are_accepted(fetched):
    check_digests(fetched, DIGESTS)


def test_a_changed_file_is_named(fetched):
    (fetched / "b.jar").write_bytes(b"tw0")
    with pytest.raises(WrongFilesError, match=r"than pinned: b\.jar$"):
        check_digests(fetched, DIGESTS)


def test_a_file_that_was_not_pinned_is_named(fetched):
    (fetched / "c.jar").write_bytes(b"three")
    with pytest.raises(WrongFilesError, match=r"than pinned: c\.jar$"):
        check_digests(fetched, DIGESTS)


def test_a_file_that_is_missing_is_named(fetched):
    (fetched / "a.jar").unlink()
    with pytest.raises(WrongFilesError, match=r"than pinned: a\.jar$"):
        check_digests(fetched, DIGESTS)


def test_digests_are_read_by_engine():
    digests = "# comment\n\naa  solr/x.jar\nbb  opensearch/y.zip\ncc  opensearch-ltr/z.jar\n"
    assert pinned("opensearch", digests) == {"y.zip": "bb"}
    assert pinned("solr", digests) == {"x.jar": "aa"}


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("opensearch", f"opensearch-{OPENSEARCH_VERSION}.zip"),
        ("solr", f"solr-core-{SOLR_VERSION}.jar"),
        ("solr", f"solr-ltr-{SOLR_VERSION}.jar"),
        ("opensearch-ltr", "RankyMcRankFace-0.2.0.jar"),
        ("elasticsearch-8", "x-pack-core-8.15.0.jar"),
        ("elasticsearch-9", "x-pack-core-9.5.3.jar"),
        ("vespa", "config-model-8.700.24.jar"),
        ("sources", LTR_SOURCE),
        ("sources", SOLR_SOURCE),
    ],
)
def test_every_engine_has_its_digests(name, file):
    digests = pinned(name, (HERE / "digests.sha256").read_text())
    assert re.fullmatch("[0-9a-f]{64}", digests[file])


def test_sources_with_other_bytes_are_refused(tmp_path):
    archive = tmp_path / LTR_SOURCE
    archive.write_bytes(gzip.compress(b"other"))
    with pytest.raises(WrongFilesError, match="other bytes than pinned"):
        unpack_source(archive, tmp_path / "code")
    assert not (tmp_path / "code").exists()


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_missing_sources_are_an_error_in_ci(ci, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(engine_install, "SOURCES", tmp_path)
    fetched = ("opensearch", "solr", *PARSERS)
    monkeypatch.setattr(engine_install, "installed", lambda name: name in fetched)
    assert main() == status
    assert f"solr-9: not installed, {tmp_path / SOLR_SOURCE} is missing" in capsys.readouterr().out


def test_a_missing_java_is_told():
    with pytest.raises(NoJavaError, match="Java 900 or later is missing"):
        java_home(900)
    with pytest.raises(NoJavaError, match="Java 1 to 2 is missing"):
        java_home(1, 2)
