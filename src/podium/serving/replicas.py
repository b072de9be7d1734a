"""The same application on Ray Serve: replicas on many machines, as many as the load needs.

The settings and the bytes of every file that they name are one message: machines of a cluster need
none of the files, and each replica unpacks what was checked once.
"""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from podium.cluster.connection import LOCAL, Cluster
from podium.errors import ArgumentError, MissingPackageError, PodiumError
from podium.serving.app import create_app
from podium.serving.releases import ReleasedModel, Releases
from podium.serving.repository import Repository
from podium.serving.settings import ServingSettings
from podium.serving.tokens import Tokens

APPLICATION = "podium"
"""The name of the application on the cluster: a second deployment replaces the first."""

_ONGOING = 16
"""How many requests a replica takes at once: it reads one while another one's body arrives."""
_TARGET_ONGOING = 4
"""With more per replica on average, there are to be more replicas."""


@dataclass(frozen=True)
class Scale:
    """How many replicas there are.

    Attributes:
        replicas: The number, or the least if it may grow.
        most: The largest number; None if it stays the same.
        processors: The processors of each.
    """

    replicas: int = 1
    most: int | None = None
    processors: float = 1.0

    def __post_init__(self) -> None:
        if self.most is not None and self.most < self.replicas:
            raise ArgumentError(
                f"at most {self.most} replicas are fewer than {self.replicas}",
                hint="Give --max-replicas of at least --replicas.",
            )

    def options(self) -> dict[str, Any]:
        """Return the options of a deployment of Ray Serve."""
        options: dict[str, Any] = {
            "max_ongoing_requests": _ONGOING,
            "ray_actor_options": {"num_cpus": self.processors},
        }
        if self.most is None:
            return options | {"num_replicas": self.replicas}
        return options | {
            "autoscaling_config": {
                "min_replicas": self.replicas,
                "max_replicas": self.most,
                "target_ongoing_requests": _TARGET_ONGOING,
            }
        }


def deploy(
    settings: ServingSettings, cluster: Cluster, scale: Scale, *, host: str, port: int
) -> None:
    """Deploy the service on a cluster, in place of the one before; returns when it answers.

    Ray Serve replaces replicas one after the other, so that no request is lost.
    """
    bundle = pack_service(settings)
    cluster.connect()
    serve = _import_serve()
    serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
    application = serve.deployment(_replica(serve), name="service", **scale.options()).bind(bundle)
    try:
        serve.run(application, name=APPLICATION, route_prefix="/")
    except RuntimeError as error:
        reason = str(error).strip().partition("\n")[0]
        raise PodiumError(
            f"the cluster does not run the service ({reason})",
            hint="See the logs of Ray Serve, and that it has processors for all replicas.",
        ) from error


def serve_on_cluster(
    settings: ServingSettings, address: str, scale: Scale, *, host: str, port: int
) -> None:
    """Deploy the service; on a cluster that ends with this process, wait for SIGTERM or SIGINT."""
    with Cluster(address, workers=scale.most or scale.replicas) as cluster:
        stopping = threading.Event()
        if address == LOCAL:
            # After the cluster was started: Ray's own handlers would abort the process.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda _number, _frame: stopping.set())
        deploy(settings, cluster, scale, host=host, port=port)
        if address == LOCAL:
            stopping.wait()
            _import_serve().shutdown()


def _replica(serve: Any) -> Any:
    """Return the class of replicas, which Ray Serve makes anew in each of their processes."""

    @serve.ingress()
    class Replica:
        def __init__(self, bundle: ServiceBundle) -> None:
            self._folder = tempfile.TemporaryDirectory(prefix="podium-serving-")
            self._settings = unpack_service(bundle, Path(self._folder.name))

        def __serve_build_asgi_app__(self) -> Any:
            return create_app(self._settings)

    return Replica


def _import_serve() -> Any:
    try:
        from ray import serve
    except ImportError as error:
        raise MissingPackageError("Ray Serve", extra="cluster") from error
    return serve


@dataclass(frozen=True)
class ServiceBundle:
    """What a replica needs.

    Attributes:
        settings: The settings, as JSON.
        models: The models of the release.
        contents: Their bytes, by digest.
        tokens: The content of the token file, or None.
    """

    settings: bytes
    models: tuple[ReleasedModel, ...]
    contents: Mapping[str, bytes]
    tokens: bytes | None


def pack_service(settings: ServingSettings) -> ServiceBundle:
    """Read and check all files; a DataError if a model cannot be served."""
    tokens = None
    if settings.token_file is not None:
        Tokens.read(settings.token_file)
        tokens = Path(settings.token_file).read_bytes()
    with tempfile.TemporaryDirectory(prefix="podium-serving-") as folder:
        release = Repository(settings, Path(folder)).reload()
        releases = Releases(Path(folder))
        contents = {model.digest: releases.content(model.digest) for model in release.models}
    return ServiceBundle(msgspec.json.encode(settings), release.models, contents, tokens)


def unpack_service(bundle: ServiceBundle, folder: Path) -> ServingSettings:
    """Write a bundle's files into a folder; return settings that name them."""
    Releases(folder).publish(bundle.models, bundle.contents)
    settings = msgspec.json.decode(bundle.settings, type=ServingSettings)
    changes: dict[str, object] = {"state_folder": str(folder), "fixed_models": True}
    if bundle.tokens is not None:
        path = folder / "tokens"
        path.write_bytes(bundle.tokens)
        changes["token_file"] = str(path)
    return msgspec.structs.replace(settings, **changes)
