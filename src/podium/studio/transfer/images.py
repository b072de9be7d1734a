"""Pictures of documents, fetched by the server so that assessors' browsers call nobody else.

Importers of documents choose the addresses, so none is trusted: only hosts that the settings list
are called, only at public addresses or in listed networks, and the connection goes to the
address that was checked, whatever the name stands for a moment later. A redirect is checked like
the first address. What comes back must be a raster image by its first bytes, and not too large:
neither in bytes nor, as Pillow reads its header, in pixels. Its pixels are left to browsers, which
decode them in a sandbox; here, a decoder's fault would be the server's.
"""

from __future__ import annotations

import io
import ipaddress
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import anyio
import anyio.to_thread
import httpx2
from PIL import Image

from podium.studio.errors import RefusedError
from podium.studio.settings import Settings, listed_entry

MAX_BYTES = 5 << 20
"""The largest picture."""
MAX_PIXELS = 40_000_000
"""The most pixels of one: a hundred kilobytes may stand for gigabytes in a browser."""
SECONDS = 10.0
"""How long fetching one may take, from the name of its host to the last byte."""
MAX_CACHED = 512 << 20
"""How many bytes of pictures are kept."""
KEPT_SECONDS = 86400.0
"""After how long a picture is fetched again."""
_MAX_REDIRECTS = 3
_RETRY_SECONDS = 60.0
"""How long a picture that could not be fetched is not tried again."""
_MOST_FAILURES = 10_000
_REDIRECTS = {301, 302, 303, 307, 308}
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF87a", 0, "image/gif"),
    (b"GIF89a", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"ftypavif", 4, "image/avif"),
)
"""The first bytes of raster images: an SVG can hold scripts, and is refused."""

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "AVIF")
"""The same, as Pillow calls them."""
_TUNNELS = [ipaddress.ip_network(net) for net in ("64:ff9b::/96", "2002::/16", "2001::/32")]
"""Addresses that stand for others, which may be private."""


class _UnavailableError(Exception):
    """The picture cannot be shown."""


@dataclass(frozen=True)
class Picture:
    """A picture, and what it is by its first bytes."""

    content: bytes
    media_type: str


def media_type(content: bytes) -> str | None:
    """What a picture is by its first bytes; None if it is none that browsers may show.

    Example:
        >>> media_type(b"GIF89a..."), media_type(b"<svg/>")
        ('image/gif', None)
    """
    for magic, start, kind in _MAGIC:
        if content[start : start + len(magic)] == magic:
            return kind
    return None


def is_listed(url: str, hosts: Sequence[str]) -> bool:
    """Whether the settings allow to fetch a picture from an address.

    Example:
        >>> is_listed("https://cdn.example.org/a.png", ["https://cdn.example.org/"])
        True
        >>> is_listed("https://cdn.example.org@evil.org/a.png", ["https://cdn.example.org/"])
        False
    """
    return listed_entry(url, hosts) is not None


class ImageStore:
    """Fetches pictures, and keeps them in the folder of exports for a day.

    Args:
        settings: Which hosts may be called, and where files are kept.
    """

    def __init__(self, settings: Settings) -> None:
        self._hosts = settings.image_hosts
        self._networks = [
            ipaddress.ip_network(network, strict=False) for network in settings.image_networks
        ]
        self._folder = settings.exports / "images"
        self._failures: dict[str, float] = {}

    def allows(self, url: str) -> bool:
        """Whether a picture may be fetched from an address."""
        return is_listed(url, self._hosts)

    def picture(self, url: str) -> Picture:
        """A picture, from the folder or from its host; refused with 404 if it cannot be shown."""
        if not self.allows(url):
            raise RefusedError(
                404,
                "This server may not fetch that picture. Its administrator lists the allowed "
                "hosts in PODIUM_STUDIO_IMAGE_HOSTS.",
            )
        path = self._folder / sha256(url.encode()).hexdigest()
        content = _read(path)
        if content is None:
            now = time.monotonic()
            if self._failures.get(url, -_RETRY_SECONDS) > now - _RETRY_SECONDS:
                raise RefusedError(404, "The picture cannot be fetched.")
            try:
                content = self._fetch(url)
            except _UnavailableError as error:
                if len(self._failures) >= _MOST_FAILURES:
                    self._failures.clear()
                self._failures[url] = now
                raise RefusedError(
                    404, "The picture cannot be fetched: %(problem)s.", problem=str(error)
                ) from error
            self._keep(path, content)
        kind = media_type(content)
        assert kind is not None
        return Picture(content, kind)

    def _fetch(self, url: str) -> bytes:
        try:
            content = anyio.run(self._fetch_in_time, url)
        except TimeoutError as error:
            raise _UnavailableError("it takes too long") from error
        _check_pixels(content)
        return content

    async def _fetch_in_time(self, url: str) -> bytes:
        # A host that sends a byte now and then is cut off all the same: each wait can be cancelled.
        with anyio.fail_after(SECONDS):
            for _ in range(_MAX_REDIRECTS + 1):
                if not self.allows(url):
                    raise _UnavailableError("its host sends elsewhere")
                following = await self._ask(url)
                if isinstance(following, bytes):
                    return following
                url = urljoin(url, following)
        raise _UnavailableError("there are too many redirects")

    async def _ask(self, url: str) -> bytes | str:
        """The bytes of a picture, or where its host redirects to."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = await anyio.to_thread.run_sync(self._address, host, port, abandon_on_cancel=True)
        named = f"[{address}]" if ":" in address else address
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        body = bytearray()
        try:
            # Without the environment's proxies and .netrc: the address is called, nothing else.
            async with (
                httpx2.AsyncClient(
                    follow_redirects=False, trust_env=False, timeout=SECONDS
                ) as client,
                client.stream(
                    "GET",
                    f"{parts.scheme}://{named}:{port}{path}",
                    headers={
                        "host": parts.netloc,
                        "accept": "image/*",
                        # A compressed one could stand for a huge one.
                        "accept-encoding": "identity",
                    },
                    extensions={"sni_hostname": host},
                ) as answer,
            ):
                if answer.status_code in _REDIRECTS and answer.headers.get("location"):
                    return str(answer.headers["location"])
                if answer.status_code != 200:
                    raise _UnavailableError(f"its host answered with status {answer.status_code}")
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise _UnavailableError(f"it is larger than {MAX_BYTES >> 20} MiB")
                    if media_type(bytes(body[:32])) is None and len(body) >= 32:
                        raise _UnavailableError("it is not a PNG, JPEG, GIF, WebP or AVIF image")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _UnavailableError(
                f"its host cannot be reached ({type(error).__name__})"
            ) from error
        if media_type(bytes(body)) is None:
            raise _UnavailableError("it is not a PNG, JPEG, GIF, WebP or AVIF image")
        return bytes(body)

    def _address(self, host: str, port: int) -> str:
        """The address of a host, if all that its name stands for may be called."""
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise _UnavailableError("its host has no address") from error
        addresses = [str(each[4][0]) for each in answers]
        if not addresses or not all(map(self._may_call, addresses)):
            raise _UnavailableError("its host is not at a public address")
        return addresses[0]

    def _may_call(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        if any(parsed in network for network in self._networks):
            return True
        if any(parsed in network for network in _TUNNELS):
            return False
        return parsed.is_global and not parsed.is_multicast

    def _keep(self, path: Path, content: bytes) -> None:
        """Store a picture, and delete the oldest if there are too many; both may fail."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = path.with_name(f"{path.name}.{os.getpid()}.{time.monotonic_ns()}")
            part.write_bytes(content)
            part.replace(path)
            _delete_oldest(self._folder)
        except OSError:
            return  # it is shown all the same


def _check_pixels(content: bytes) -> None:
    """Refuse a picture that is too large once it is decoded, or that nobody could decode."""
    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            pixels = image.width * image.height
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _UnavailableError("it has too many pixels") from error
    except Exception as error:  # a damaged file makes Pillow's readers raise whatever they do
        raise _UnavailableError("it is damaged") from error
    if pixels > MAX_PIXELS:
        raise _UnavailableError("it has too many pixels")


def _read(path: Path) -> bytes | None:
    """A kept picture, unless it is too old."""
    try:
        if path.stat().st_mtime < time.time() - KEPT_SECONDS:
            return None
        return path.read_bytes()
    except OSError:
        return None


def _delete_oldest(folder: Path) -> None:
    files = []
    for entry in os.scandir(folder):
        status = entry.stat()
        files.append((status.st_mtime, status.st_size, entry.path))
    size = sum(each[1] for each in files)
    for _, bytes_, name in sorted(files):
        if size <= MAX_CACHED:
            return
        Path(name).unlink(missing_ok=True)
        size -= bytes_
