"""The settings of a server, by environment variables, and the URLs that they list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Each setting is an environment variable with ``PODIUM_STUDIO_`` before its name.

    Example:
        >>> Settings(database="sqlite:///judging.db").session_hours
        12.0
    """

    model_config = SettingsConfigDict(env_prefix="PODIUM_STUDIO_", extra="ignore")

    database: str = "sqlite:///podium-studio.db"
    """Where everything is kept, as SQLAlchemy writes it: ``postgresql+psycopg://…`` for teams."""

    pool_size: int = Field(default=10, ge=1)
    """How many connections to the database each process holds at most."""

    statement_seconds: float = Field(default=15.0, gt=0)
    """How long a request waits for one answer of the database before it is given up."""

    exports: Path = Path("podium-exports")
    """The folder for files that were asked for; all processes must see the same one."""

    public_url: str = ""
    """Where browsers reach the server, if not where it listens; for links and sign-in."""

    secure_cookies: bool | None = None
    """Whether cookies travel by HTTPS only; by default if the public URL is one of HTTPS."""

    session_hours: float = Field(default=12.0, gt=0)
    """After how long people sign in again."""

    largest_request: int = Field(default=64 * 2**20, ge=1024)
    """The largest upload in bytes."""

    job_seconds: float = Field(default=600.0, gt=0)
    """How long one import, export, report or other job may take; a model has its own budget."""

    engines: list[str] = []
    """Search engines that candidates may be fetched from, each the start of its URLs.

    None by default: a manager's browser must not make the server call whatever it can reach.
    """

    image_hosts: list[str] = []
    """Where pictures of documents may be fetched from, each the start of their URLs; none by
    default."""

    image_networks: list[str] = []
    """Networks that are not public and yet may be called for pictures, such as ``10.1.0.0/16``."""

    models: list[str] = []
    """Endpoints of language models that may judge, each with its key where a URL has a password."""

    webhooks: list[str] = []
    """Where webhooks may go, each the start of its URLs; none by default, as for engines."""

    smtp: str = ""
    """The mail server, such as ``smtp://user:password@mail.example.org:587``; ``smtps://`` for
    TLS from the start. Without one, no e-mail is sent."""

    mail_from: str = ""
    """The sender of e-mail."""

    oidc_issuer: str = ""
    """The OpenID provider to sign in with, by its issuer URL."""

    oidc_client_id: str = ""
    """What the provider calls this server."""

    oidc_client_secret: str = ""
    """The secret that goes with it."""

    oidc_creates_accounts: bool = False
    """Whether anyone whom the provider knows gets an account; else only who was invited."""

    trusted_proxies: str = "127.0.0.1"
    """Whose word on a browser's address is taken, for the count of failed sign-ins."""

    @property
    def is_secure(self) -> bool:
        """Whether browsers come by HTTPS.

        Example:
            >>> Settings(public_url="https://judge.example.org").is_secure
            True
        """
        if self.secure_cookies is not None:
            return self.secure_cookies
        return self.public_url.lower().startswith("https://")

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.oidc_issuer and not self.public_url:
            raise ValueError(
                "sign-in by OpenID needs PODIUM_STUDIO_PUBLIC_URL: the provider sends people there"
            )
        if self.smtp and not (self.public_url and self.mail_from):
            raise ValueError(
                "e-mail needs PODIUM_STUDIO_PUBLIC_URL, for links, and PODIUM_STUDIO_MAIL_FROM"
            )
        return self


_PORTS = {"http": 80, "https": 443}


def listed_entry(url: str, listed: Sequence[str]) -> str | None:
    """The entry that a URL belongs to, by exact scheme, host and port and the start of its path.

    Example:
        >>> listed_entry("http://search:9200/shop/_search", ["http://search:9200/"])
        'http://search:9200/'
        >>> listed_entry("http://search:9200@elsewhere/shop", ["http://search:9200/"])
    """
    requested = _parts(url)
    for entry in listed:
        known = _parts(entry)
        if requested and known and requested[:3] == known[:3]:
            begin = known[3].rstrip("/") + "/"
            is_below = (requested[3].rstrip("/") + "/").startswith(begin)
            if is_below and "@" not in urlsplit(url).netloc:
                return entry
    return None


def _parts(url: str) -> tuple[str, str, int, str] | None:
    """Scheme, host, port and path, or None if a URL is odd in any way."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    path = unquote(parts.path)
    odd = "\\" in url or ".." in path or "%" in path or not url.isprintable() or " " in url
    if odd or parts.scheme not in _PORTS or not parts.hostname or parts.fragment:
        return None
    return parts.scheme, parts.hostname.lower(), port or _PORTS[parts.scheme], parts.path
