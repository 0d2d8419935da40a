"""What all tests share: property tests draw the same examples in CI every time, so that a change is judged alike."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
