"""Talk to a Podium Studio from Python: projects, imports, judging, exports, labels.

from podium.studio.client import StudioClient

studio = StudioClient("https://judging.example.org")  # the token is in PODIUM_STUDIO_TOKEN
project = studio.create_project("Shoes", k=10)
project.import_candidates("candidates.jsonl")
…
labels = project.labels()  # podium.data.Judgments, for podium.rankers
"""

from podium.studio.client.client import StudioClient, StudioProject, project_at
from podium.studio.client.values import (
    StudioDocument,
    StudioError,
    StudioQuestion,
    StudioTask,
)

__all__ = [
    "StudioClient",
    "StudioDocument",
    "StudioError",
    "StudioProject",
    "StudioQuestion",
    "StudioTask",
    "project_at",
]
