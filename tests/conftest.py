"""What all tests share: property tests draw the same examples in CI every time, so that a change is judged alike.

No example has a deadline: a busy machine is not a wrong answer.
"""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")
