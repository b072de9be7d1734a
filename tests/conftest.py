"""Settings that all tests share."""

import os

from hypothesis import settings

# It registers a ranker, and looking for examples in it would load it under a second name.
collect_ignore = ["rankers/one_feature.py"]

# The first call of a kernel compiles it, which takes seconds: no example has a deadline.
settings.register_profile("podium", deadline=None)
# CI draws the same examples every time: a change is judged by what it changed. New examples, and
# more, are drawn wherever a person runs the tests.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("ci" if os.environ.get("CI") else "podium")
