"""A real S3-compatible store on this machine: SeaweedFS, with a bucket for tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

from pyarrow import fs

from tests.ports import free_port

BUCKET = "judged"
SECRET = "not-to-be-shown"
_SERVICES = ("master", "volume", "filer", "s3")


class ObjectStore:
    """A store that asks for a key; it lives until it is killed.

    Args:
        folder: Where it keeps its files.
    """

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        settings = folder / "s3.json"
        key = {"accessKey": "assessor", "secretKey": SECRET}
        rights = ["Admin", "Read", "Write", "List"]
        identity = {"name": "podium", "credentials": [key], "actions": rights}
        settings.write_text(json.dumps({"identities": [identity]}))
        ports = {f"{name}.port": free_port() for name in _SERVICES} | {"s3.port": self.port}
        ports |= {f"{name}.port.grpc": free_port() for name in _SERVICES}
        others = {"s3.port.iceberg": 0, "s3.port.lance": 0, "volume.max": 10}
        sizes = {"master.volumeSizeLimitMB": 64}
        home = {"dir": folder, "ip": "127.0.0.1", "ip.bind": "127.0.0.1", "s3.config": settings}
        options = [f"-{name}={value}" for name, value in (home | ports | others | sizes).items()]
        weed = Path(sys.executable).with_name("weed")
        self._process = subprocess.Popen(
            [weed, f"-logdir={folder}", "server", "-s3", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._make_bucket(time.monotonic() + 120)

    def _make_bucket(self, deadline: float) -> None:
        while True:
            try:
                fs.S3FileSystem(
                    access_key="assessor",
                    secret_key=SECRET,
                    endpoint_override=f"127.0.0.1:{self.port}",
                    scheme="http",
                    allow_bucket_creation=True,
                ).create_dir(BUCKET)
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def url(self, path: str, secret: str = SECRET) -> str:
        """The URL of something in the bucket."""
        where = quote(f"127.0.0.1:{self.port}", safe="")
        return f"s3://assessor:{secret}@{BUCKET}/{path}?endpoint_override={where}&scheme=http"

    def upload(self, folder: Path, path: str) -> str:
        """Copy a folder into the bucket; gives its URL there."""
        store, target = fs.FileSystem.from_uri(self.url(path))
        fs.copy_files(str(folder), target, destination_filesystem=store)
        return self.url(path)

    def kill(self) -> None:
        """Kill -9."""
        self._process.kill()
        self._process.wait()
