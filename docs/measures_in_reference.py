"""Griffe extension: the reference has the measures, which are public by being registered."""

from typing import Any

import griffe

import podium.measures


class Measures(griffe.Extension):
    """Export what the files of measures define: their names are in no list."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Add every registered measure to ``podium.measures``."""
        measures = pkg.members.get("measures")
        if not isinstance(measures, griffe.Module):
            return
        names = []
        for module in measures["definitions"].members.values():
            if not isinstance(module, griffe.Module):
                continue
            for name, member in module.members.items():
                if name in podium.measures.__all__ and isinstance(member, griffe.Function):
                    names.append(name)
                    alias = griffe.Alias(name, member.path, parent=measures, lineno=1)
                    measures.members[name] = alias
        measures.exports = [*(measures.exports or []), *names]
