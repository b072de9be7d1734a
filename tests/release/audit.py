"""``python -m tests.release.audit``: are there advisories against what is deployed?

The lock files are held against Python's advisories by pip-audit, package-lock.json against npm's.
Where a service of advisories cannot be reached, that is printed and is not an error, but with
``--require`` it is one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.release.locks import EXTRAS, LOCKS, ROOT


@dataclass(frozen=True)
class Audit:
    """What an audit came to.

    Attributes:
        checked: How many packages were looked up.
        advisories: Each advisory in words.
        unknown: Why packages could not be looked up; empty if all were.
    """

    checked: int
    advisories: Sequence[str]
    unknown: str = ""


def read_pip_audit(output: str, errors: str) -> Audit:
    """Read what ``pip-audit --format json`` printed."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Audit(0, [], _last_line(errors) or "pip-audit printed nothing")
    skipped = [each for each in packages if "skip_reason" in each]
    advisories = [
        f"{each['name']} {each['version']}: {advisory['id']}"
        + (f", fixed in {', '.join(advisory['fix_versions'])}" if advisory["fix_versions"] else "")
        for each in packages
        for advisory in each.get("vulns", ())
    ]
    unknown = ""
    if skipped:
        unknown = f"{len(skipped)} of {len(packages)} packages: {skipped[0]['skip_reason']}"
    return Audit(len(packages) - len(skipped), advisories, unknown)


def read_npm_audit(output: str, errors: str) -> Audit:
    """Read what ``npm audit --json`` printed."""
    try:
        report = json.loads(output)
        packages = report["vulnerabilities"]
        total = report["metadata"]["dependencies"]["total"]
    except (ValueError, KeyError, TypeError):
        return Audit(0, [], _last_line(errors) or "npm audit printed no report")
    advisories = [
        f"{name} {each['range']}: {each['severity']}, "
        + "; ".join(via["title"] for via in each["via"] if isinstance(via, dict))
        for name, each in sorted(packages.items())
    ]
    return Audit(total, advisories)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # npm's last line names a log file: the one before says what happened.
    kept = [line for line in lines if "complete log of this run" not in line]
    return kept[-1] if kept else ""


def _run(*command: str) -> tuple[str, str]:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    return done.stdout, done.stderr


def audits() -> dict[str, Audit]:
    """Run all audits."""
    tool = shutil.which("pip-audit", path=Path(sys.executable).parent) or "pip-audit"
    results = {}
    for name in EXTRAS:
        lock = str((LOCKS / f"{name}.txt").relative_to(ROOT))
        options = ("--disable-pip", "--progress-spinner", "off", "--format", "json")
        results[lock] = read_pip_audit(*_run(tool, "--requirement", lock, *options))
    results["package-lock.json"] = read_npm_audit(*_run("npm", "audit", "--json"))
    return results


def summary(results: dict[str, Audit], *, require: bool) -> tuple[list[str], int]:
    """Return the lines to print, and the exit status."""
    lines, status = [], 0
    for name, audit in results.items():
        for advisory in audit.advisories:
            lines.append(f"{name}: {advisory}")
            status = 1
        lines.append(
            f"{name}: {audit.checked} packages looked up, {len(audit.advisories)} advisories"
        )
        if audit.unknown:
            lines.append(f"{name}: NOT AUDITED: {audit.unknown}")
            status = 1 if require else status
    return lines, status


def main() -> int:
    """Print what was found."""
    lines, status = summary(audits(), require="--require" in sys.argv[1:])
    print("\n".join(lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
