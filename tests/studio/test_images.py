"""Pictures come through the server: from listed hosts, at allowed addresses, and only pictures."""

from __future__ import annotations

import io
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from podium.studio.errors import RefusedError
from podium.studio.settings import Settings
from podium.studio.transfer import images
from podium.studio.transfer.images import ImageStore, is_listed, media_type

_FILE = io.BytesIO()
Image.new("RGB", (3, 2)).save(_FILE, "PNG")
PNG = _FILE.getvalue()
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>' + b" " * 40


class _Host(BaseHTTPRequestHandler):
    asked: list[tuple[str, str]] = []  # noqa: RUF012 - what the test looks at

    def do_GET(self):
        self.asked.append((self.path, self.headers["host"]))
        redirect = {
            "/pictures/moved.png": "/pictures/a.png",
            "/pictures/away.png": "http://127.0.0.2:1/pictures/a.png",
            "/pictures/inside.png": "/private/a.png",
            "/pictures/loop.png": "/pictures/loop.png",
        }.get(self.path)
        if redirect:
            self.send_response(302)
            self.send_header("location", redirect)
            self.end_headers()
            return
        body = {
            "/pictures/a.png": PNG,
            "/pictures/script.png": SVG,
            "/pictures/short.png": b"GIF",
            "/pictures/huge.png": PNG + b"\0" * images.MAX_BYTES,
        }.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("content-type", "image/png")
        self.end_headers()
        try:
            self.wfile.write(body or b"")
        except OSError:
            return

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def host():
    _Host.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def store(tmp_path, host, networks=("127.0.0.0/8",)):
    return ImageStore(
        Settings(exports=tmp_path, image_hosts=[f"{host}/pictures"], image_networks=list(networks))
    )


def test_a_picture_is_fetched_once_and_served_by_its_first_bytes(tmp_path, host):
    kept = store(tmp_path, host)
    for _ in range(2):
        picture = kept.picture(f"{host}/pictures/a.png")
        assert (picture.content, picture.media_type) == (PNG, "image/png")
    assert store(tmp_path, host).picture(f"{host}/pictures/a.png").content == PNG
    assert _Host.asked == [("/pictures/a.png", host.removeprefix("http://"))]


def test_a_redirect_within_what_is_listed_is_followed(tmp_path, host):
    assert store(tmp_path, host).picture(f"{host}/pictures/moved.png").content == PNG


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/pictures/script.png", "not a PNG"),
        ("/pictures/short.png", "not a PNG"),
        ("/pictures/huge.png", "larger than 5 MiB"),
        ("/pictures/none.png", "status 404"),
        ("/pictures/away.png", "sends elsewhere"),
        ("/pictures/inside.png", "sends elsewhere"),
        ("/pictures/loop.png", "too many redirects"),
    ],
)
def test_what_is_no_picture_is_refused_and_not_asked_again_at_once(tmp_path, host, path, problem):
    kept = store(tmp_path, host)
    with pytest.raises(RefusedError, match=problem) as error:
        kept.picture(host + path)
    assert error.value.status == 404
    asked = len(_Host.asked)
    with pytest.raises(RefusedError, match="cannot be fetched"):
        kept.picture(host + path)
    assert len(_Host.asked) == asked
    assert not list(tmp_path.glob("images/*"))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0", "::1", "fd00::1"),
        *("fe80::1%eth0", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1"),
    ],
)
def test_private_addresses_are_not_called(tmp_path, address):
    kept = ImageStore(Settings(exports=tmp_path, image_hosts=["http://x/"]))
    assert not kept._may_call(address)
    assert kept._may_call("93.184.215.14")


def test_a_listed_host_at_a_private_address_needs_its_network(tmp_path, host):
    kept = store(tmp_path, host, networks=())
    with pytest.raises(RefusedError, match="not at a public address"):
        kept.picture(f"{host}/pictures/a.png")
    assert _Host.asked == []


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("https://cdn.example.org/shop/a.png", True),
        ("https://CDN.example.org:443/shop/a.png", True),
        ("http://cdn.example.org/shop/a.png", False),
        ("https://cdn.example.org:444/shop/a.png", False),
        ("https://cdn.example.org/shopping/a.png", False),
        ("https://cdn.example.org/shop/../private.png", False),
        ("https://cdn.example.org/shop/%2e%2e/private.png", False),
        ("https://cdn.example.org@evil.example/shop/a.png", False),
        ("https://cdn.example.org.evil.example/shop/a.png", False),
        ("//cdn.example.org/shop/a.png", False),
        ("file:///shop/a.png", False),
        ("javascript:alert(1)", False),
        ("", False),
    ],
)
def test_only_listed_addresses_are_fetched(url, listed):
    assert is_listed(url, ["https://cdn.example.org/shop/"]) is listed


def test_types():
    assert [media_type(magic) for magic in (PNG, b"\xff\xd8\xff\xe0", b"GIF89a", SVG, b"")] == [
        *("image/png", "image/jpeg", "image/gif"),
        *(None, None),
    ]
    assert media_type(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    assert media_type(b"RIFF\0\0\0\0WAVEfmt ") is None


def test_the_oldest_pictures_make_place(tmp_path, host, monkeypatch):
    monkeypatch.setattr(images, "MAX_CACHED", 2 * len(PNG))
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        path = folder / f"old{number}"
        path.write_bytes(PNG)
        stamp = time.time() - 100 + number
        os.utime(path, (stamp, stamp))
    store(tmp_path, host).picture(f"{host}/pictures/a.png")
    names = {path.name for path in folder.iterdir()}
    assert len(names) == 2
    assert "old2" in names
