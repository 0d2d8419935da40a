"""Removes folders with all in them."""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)


def remove_tree(path: Path) -> None:
    """Remove a folder and all in it, even where the right to write was taken away; links are not followed."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        return
    with suppress(OSError):
        path.chmod(0o700)
    for folder, subfolders, _ in os.walk(path):
        for name in subfolders:
            below = os.path.join(folder, name)
            if not os.path.islink(below):
                with suppress(OSError):
                    os.chmod(below, 0o700)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        log.warning("%s: cannot be removed whole; look at what is left, and remove it", path)
