"""Run a notebook in an empty folder and compare what its cells give with what it shows.

python tests/run_notebook.py docs/notebooks/evaluate.ipynb
python tests/run_notebook.py --write docs/notebooks/*.ipynb
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests.run_markdown import same


def shown(cell: NotebookNode) -> str:
    """Return what a cell prints and gives, as text."""
    pieces = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            pieces.append(output.text)
        else:
            pieces.append(output.get("data", {}).get("text/plain", output.output_type))
    return "\n".join(pieces)


def run(path: Path, *, write: bool = False) -> list[str]:
    """Run a notebook, and return how its cells differ."""
    notebook = nbformat.read(path, as_version=4)
    before = [shown(cell) for cell in notebook.cells]
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=600, resources={"metadata": {"path": folder}}, record_timing=False
        )
        client.execute()
    differences = []
    for cell, old in zip(notebook.cells, before, strict=True):
        new = shown(cell)
        if not same(old, new):
            differences.append(f"{path.name}, cell {cell.id}: shows\n{old}\nbut gives\n{new}")
    if write and differences:
        # Details of the machine that ran it are not part of the notebook.
        notebook.metadata.language_info = {"name": "python"}
        nbformat.write(notebook, path)
    return differences


if __name__ == "__main__":
    writes = "--write" in sys.argv
    found = [
        difference
        for name in sys.argv[1:]
        if name != "--write"
        for difference in run(Path(name), write=writes)
    ]
    if found and not writes:
        sys.exit("\n".join(found))
