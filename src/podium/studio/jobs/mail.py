"""E-mail by SMTP, where the server's settings name a mail server."""

from __future__ import annotations

import ipaddress
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

from podium.studio.json_types import JsonObject
from podium.studio.settings import Settings

_SECONDS = 20.0
_PORTS = {"smtp": 587, "smtps": 465}


def send_mail(settings: Settings, content: JsonObject) -> str | None:
    """Send an e-mail; returns the problem, or None if the mail server took it.

    Args:
        settings: The server's settings.
        content: The recipient (``to``), ``subject`` and ``text``.
    """
    parts = urlsplit(settings.smtp)
    if parts.scheme not in _PORTS or not parts.hostname:
        return "PODIUM_STUDIO_SMTP names no mail server"
    port = parts.port or _PORTS[parts.scheme]
    try:
        message = _message(settings.mail_from, content)
        with _connected(parts.scheme, parts.hostname, port) as server:
            if parts.username is not None:
                assert server.sock is not None
                encrypted = isinstance(server.sock, ssl.SSLSocket)
                if not may_send_password(encrypted, server.sock.getpeername()[0]):
                    return "the mail server offers no encryption, so no password was sent"
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(message)
    except smtplib.SMTPResponseException as error:
        return f"{type(error).__name__}: {error.smtp_code}"
    except (OSError, smtplib.SMTPException, ValueError) as error:
        return type(error).__name__
    return None


def may_send_password(encrypted: bool, address: str) -> bool:
    """Whether a password may go over a connection: encrypted, or within this machine.

    Example:
        >>> may_send_password(False, "127.0.0.1"), may_send_password(False, "192.0.2.1")
        (True, False)
    """
    return encrypted or ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _message(sender: str, content: JsonObject) -> EmailMessage:
    message = EmailMessage()  # it refuses line breaks in headers
    message["From"] = sender
    message["To"] = content["to"]
    message["Subject"] = content["subject"]
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain="podium.invalid")
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(content["text"])
    return message


def _connected(scheme: str, host: str, port: int) -> smtplib.SMTP:
    """A connection, encrypted wherever the mail server can."""
    context = ssl.create_default_context()
    if scheme == "smtps":
        return smtplib.SMTP_SSL(host, port, timeout=_SECONDS, context=context)
    server = smtplib.SMTP(host, port, timeout=_SECONDS)
    try:
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=context)
            server.ehlo()
    except BaseException:
        server.close()
        raise
    return server
