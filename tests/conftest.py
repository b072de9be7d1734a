"""Settings that all tests share."""

from hypothesis import settings

# The first call of a kernel compiles it, which takes seconds: no example has a deadline.
settings.register_profile("podium", deadline=None)
settings.load_profile("podium")
