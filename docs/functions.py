"""Griffe extension: the reference has the functions that share their name with their module."""

from collections.abc import Iterator
from typing import Any

import griffe

import podium.measures


class Functions(griffe.Extension):
    """In Python the function hides its module; Griffe sees the module, and would leave both out."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give such modules another name, and point all imports at it."""
        _export_measures(pkg)
        renamed: dict[str, str] = {}
        for package in list(_modules(pkg)):
            for name, module in list(_submodules(package).items()):
                if name in module.members and name in map(str, package.exports or ()):
                    renamed[module.path] = f"{package.path}.{name}_module"
                    module.name = f"{name}_module"
                    package.members[module.name] = module
                    package.members[name] = griffe.Alias(  # first on the page
                        name, f"{module.path}.{name}", parent=package, lineno=1
                    )
        for package in _modules(pkg):
            for name, member in list(package.members.items()):
                if not isinstance(member, griffe.Alias):
                    continue
                source, _dot, imported = member.target_path.rpartition(".")
                if source in renamed or member.target_path in renamed:
                    # Also where the path stays: an alias that has found the module looks again.
                    path = f"{renamed.get(source, source)}.{imported}"
                    line = member.alias_lineno
                    package.members[name] = griffe.Alias(name, path, parent=package, lineno=line)


def _export_measures(pkg: griffe.Module) -> None:
    """Add the measures, which are public by being registered: their names are in no list."""
    measures = pkg.members.get("measures")
    if not isinstance(measures, griffe.Module):
        return
    names = []
    for module in _submodules(measures["definitions"]).values():
        for name, member in module.members.items():
            if name in podium.measures.__all__ and isinstance(member, griffe.Function):
                names.append(name)
                measures.members[name] = griffe.Alias(name, member.path, parent=measures, lineno=1)
    measures.exports = [*(measures.exports or []), *names]


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for each in _submodules(module).values():
        yield from _modules(each)


def _submodules(module: griffe.Module) -> dict[str, griffe.Module]:
    return {name: each for name, each in module.members.items() if isinstance(each, griffe.Module)}
