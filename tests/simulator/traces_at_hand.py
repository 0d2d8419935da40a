"""Where traces lie: excerpts that come with the examples, and whole ones where somebody has put them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "simulator"
DATA = Path(os.environ.get("STROMBOLI_DATA") or ROOT.parent / "shared" / "data")
"""Public traces in full, in the folders `swf` and `openb`; they are not part of the repository."""

needs_full_traces = pytest.mark.skipif(
    not (DATA / "swf").is_dir(), reason=f"no traces in {DATA}; STROMBOLI_DATA names the folder"
)
