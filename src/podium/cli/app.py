"""Applications of the command line, and how their help is written."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.models import CommandFunctionType

_REQUIRED = re.compile(r"\{(\w+)\}")


class _PlainHelp:
    """Help without a type on flags, with required arguments as <data> and summaries uncut."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if isinstance(each, TyperOption) and each.is_flag and each.metavar is None:
                each.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [_REQUIRED.sub(r"<\1>", piece) for piece in pieces]

    def get_short_help_str(self, limit: int = sys.maxsize) -> str:
        return super().get_short_help_str(limit)  # type: ignore[misc,no-any-return]


class Command(_PlainHelp, TyperCommand):
    """A command."""


class Group(_PlainHelp, TyperGroup):
    """Several commands."""


class App(typer.Typer):
    """A command, or several."""

    def __init__(self, *, cls: type[TyperGroup] = Group, **options: Any) -> None:
        super().__init__(cls=cls, **options)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add a function as a command."""
        return super().command(name, cls=cls, **options)
