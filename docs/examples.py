"""Griffe extension: the reference shows ``Example:`` sections as code, like ``Examples:``."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Google style allows both spellings, Griffe knows only the plural as a section of code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Write the plural before a docstring is parsed."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE
            )
