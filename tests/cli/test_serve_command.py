"""``podium serve`` refuses what it cannot serve before it listens."""

from __future__ import annotations

import socket

import pytest

from podium.errors import ArgumentError
from podium.serving.settings import ModelSpec, parse_model
from tests.cli.run_podium import podium
from tests.ports import free_port
from tests.serving.service import linear


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.podium", "other/a.podium"], "version 1 of a is given twice"),
        (["a b.podium"], "'a b' cannot be the name of a model"),
        (["web@0=a.podium"], "'0' is not a version"),
        (["web="], "'web=' names no file"),
        (["a.podium", "--shadow", "b.podium"], "go to the ranking log"),
        (["a.podium", "--shadow", "c=b.podium", "--ranking-log", "logs"], "c is not served"),
        (["a.podium", "--absent", "age"], "'age' is not FEATURE=VALUE"),
        (["a.podium", "--absent", "age=inf"], "'age=inf' is not FEATURE=VALUE"),
        (["missing.podium"], "missing.podium: no such file"),
        (["a.podium", "--token-file", "no-tokens"], "no-tokens: no such file"),
        (["a.podium", "--search", "search.toml"], "search.toml: no such file"),
        (["a.podium", "--replicas", "2"], "replicas are those of a cluster"),
        (["a.podium", "--cluster", "local", "--workers", "2"], "a replica is one process"),
    ],
)
def test_mistakes_are_named(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = podium("serve", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.decode().split())


def test_a_port_that_is_taken_is_named(tmp_path):
    linear().save(tmp_path / "a.podium")
    with socket.socket() as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = podium("serve", tmp_path / "a.podium", "--port", port)
    assert done.returncode == 2
    assert f"127.0.0.1:{port} cannot be listened at" in done.stderr.decode()


def test_names_and_versions():
    assert parse_model("models/web.podium") == ModelSpec("web", 1, "models/web.podium")
    assert parse_model("web@12=a=b.podium") == ModelSpec("web", 12, "a=b.podium")
    with pytest.raises(ArgumentError, match="not a version"):
        parse_model("web@1.5=a.podium")
