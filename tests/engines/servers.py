"""Search engines as processes of the tests' own, on the loopback interface."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from grp import getgrnam
from pathlib import Path
from pwd import getpwnam
from typing import Self

import httpx2

from tests.engines.install import HERE, OPENSEARCH, PLUGIN, SOLR, SOLR_9, installed
from tests.engines.java import java_home
from tests.ports import free_port

_USER, _GROUP = "nobody", "nogroup"
_START_SECONDS = 240.0
"""On two shared cores a start takes more than a minute."""
_MEMORY = ["-Xms512m", "-Xmx768m"]


class NotStartedError(RuntimeError):
    """A server ended, or did not answer in time."""


class Server(ABC):
    """A server with a temporary folder of its own.

    Search engines refuse to run as root, so they run as an unprivileged user. The kernel kills a
    server when its parent ends, so none outlives tests that were killed.

    Args:
        optimized: Whether Java compiles as in production. Tests have the quick compiler alone:
            their servers live for minutes.
    """

    ready_path: str
    """What answers with status 200 once the server is ready."""

    def __init__(self, *, optimized: bool = False) -> None:
        # Not in pytest's folders: those are closed to all but their owner.
        self.folder = Path(tempfile.mkdtemp(prefix="podium-engine-"))
        self.java_options = [*_MEMORY, *([] if optimized else ["-XX:TieredStopAtLevel=1"])]
        self.port = free_port()
        self.log = self.folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    @abstractmethod
    def prepare(self) -> None:
        """Write settings into the folder."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that becomes the server."""

    def environment(self) -> dict[str, str]:
        """Return the variables that the command needs beside PATH."""
        return {}

    def start(self, seconds: float = _START_SECONDS) -> None:
        """Start the server and wait until it answers."""
        self.prepare()
        words = ["setpriv", "--pdeathsig", "KILL"]
        if os.getuid() == 0:
            user, group = getpwnam(_USER).pw_uid, getgrnam(_GROUP).gr_gid
            for path in [self.folder, *self.folder.rglob("*")]:
                os.lchown(path, user, group)
            words += ["--reuid", _USER, "--regid", _GROUP, "--clear-groups"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*words, "--", *self.command()],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait(time.monotonic() + seconds)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill the server, and remove its folder."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _wait(self, end: float) -> None:
        assert self.process is not None
        with httpx2.Client(trust_env=False, timeout=5) as client:
            while self.process.poll() is None and time.monotonic() < end:
                try:
                    if client.get(self.url + self.ready_path).status_code == 200:
                        return
                except httpx2.HTTPError:
                    pass
                time.sleep(0.2)
        status = self.process.poll()
        why = "is not ready in time" if status is None else f"ended with status {status}"
        tail = self.log.read_text(errors="replace")[-4000:]
        raise NotStartedError(f"{type(self).__name__} {why}. Its log ends with:\n{tail}")


class OpenSearchServer(Server):
    """OpenSearch, with its learning-to-rank plugin if that is installed.

    Args:
        joins: The server whose cluster it joins; by default it begins one.
        optimized: Whether Java compiles as in production.
    """

    ready_path = "/_cluster/health?wait_for_status=yellow&timeout=1s"

    def __init__(self, joins: OpenSearchServer | None = None, *, optimized: bool = False) -> None:
        super().__init__(optimized=optimized)
        self.transport_port = free_port()
        self.cluster = "cluster.initial_cluster_manager_nodes: [first]\nnode.name: first"
        if joins is not None:
            self.cluster = f'discovery.seed_hosts: ["127.0.0.1:{joins.transport_port}"]'

    def prepare(self) -> None:
        """Copy the distribution: it writes into its own folders, and resolves links."""
        home = self.folder / "home"
        shutil.copytree(OPENSEARCH, home)
        if installed("opensearch-ltr"):
            shutil.copytree(PLUGIN, home / "plugins/opensearch-ltr")
        (home / "config/opensearch.yml").write_text(
            f"""\
{self.cluster}
network.host: 127.0.0.1
http.port: {self.port}
transport.port: {self.transport_port}
path.data: {self.folder / "data"}
path.logs: {self.folder / "logs"}
# A disk that is fuller than others like it must not make indices read-only.
cluster.routing.allocation.disk.threshold_enabled: false
"""
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that the start script reads."""
        return {
            "OPENSEARCH_JAVA_HOME": str(java_home(21)),
            "OPENSEARCH_JAVA_OPTS": " ".join(self.java_options),
        }

    def command(self) -> list[str]:
        """Return the start script, which becomes the server."""
        return ["bash", str(self.folder / "home/bin/opensearch")]


class SolrServer(Server):
    """Solr 8 with learning to rank, and one core."""

    libraries = SOLR
    runner = "org.apache.solr.client.solrj.embedded.JettySolrRunner"
    ready_path = "/solr/rows/select?q=*:*"

    @property
    def core(self) -> str:
        """The address of the core."""
        return f"{self.url}/solr/rows"

    def prepare(self) -> None:
        """Write the server's home with one core in it."""
        core = self.folder / "rows"
        shutil.copytree(HERE / "solr/core", core)
        (core / "core.properties").write_text("name=rows\n")
        (self.folder / "solr.xml").write_text("<solr/>\n")

    def command(self) -> list[str]:
        """Return the command that compiles and runs the server's main class."""
        # Solr 8 calls what Java 24 removed.
        java = java_home(17, 23) / "bin/java"
        main = shutil.copy(HERE / "solr/SolrServer.java", self.folder)
        return [
            str(java), *self.java_options, f"-Dsolr.log.dir={self.folder}",
            "-cp", f"{self.libraries}/*",
            str(main), self.runner, str(self.folder), str(self.port),
        ]  # fmt: skip


class Solr9Server(SolrServer):
    """Solr 9, the first version whose trees know missing values."""

    libraries = SOLR_9
    runner = "org.apache.solr.embedded.JettySolrRunner"
