"""Temporary folders of killed clusters go with the next one."""

import os
import tempfile
import threading
from pathlib import Path

import pytest

from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.temporary_folders import remove_abandoned


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_temporary_folder_of_a_killed_cluster_goes_with_the_next(tmp_path: Path) -> None:
    killed, runs, adopted = (DataFolder(None) for _ in range(3))
    for thread in threading.enumerate():
        if thread.name == "abandoned folders":  # each of them looks for such folders, too
            thread.join(60)
    for folder in (killed, adopted):
        os.close(folder._lock)  # as the kernel does when a process is killed
    kept = DataFolder(adopted.path)
    os.close(kept._lock)
    other = tmp_path / "stromboli-other"
    other.mkdir()
    (other / "lock").touch()
    remove_abandoned()
    assert not killed.path.exists()
    assert runs.path.exists()
    assert adopted.path.exists()
    assert other.exists()
    runs.release()
