"""Programs of others that tests use where they find them: on the path, or in the directory `$VOLCANO_E2E`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

FOLDER = os.environ.get("VOLCANO_E2E", "")


def program(name: str) -> str:
    """Where a program is; without it, the test is skipped."""
    found = shutil.which(name, path=os.pathsep.join([os.environ["PATH"], FOLDER]))
    if found is None:
        pytest.skip(f"there is no {name} on PATH, nor in $VOLCANO_E2E (see CONTRIBUTING.md)")
    return found


def suite(name: str) -> Path:
    """A compiled end-to-end suite of Volcano; without it, the test is skipped."""
    path = Path(FOLDER) / f"{name}.test"
    if not FOLDER or not path.exists():
        pytest.skip(f"there is no {name}.test in $VOLCANO_E2E (see CONTRIBUTING.md)")
    return path
