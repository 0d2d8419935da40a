"""How many random examples tests look at; `STROMBOLI_EXAMPLES=20 pytest tests/properties` has 20 times as many."""

from __future__ import annotations

import os

VARIABLE = "STROMBOLI_EXAMPLES"


def scaled(usual: int) -> int:
    """Return the number of examples in the place of the usual one."""
    return max(round(usual * float(os.environ.get(VARIABLE, "1"))), 1)
