"""The list of running clusters: nobody else's files are believed, followed or deleted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.running_clusters import (
    FolderError,
    RunningCluster,
    find_cluster,
    running_clusters,
    stop_cluster,
)

GONE = 2**22 - 3
"""A process that there is not."""
SECOND_CLUSTER = """
import pathlib, signal, sys
from stromboli.embedded.data_folder import DataFolder
folder = DataFolder(pathlib.Path(sys.argv[1]))
folder.announce("https://127.0.0.1:2")
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def index(runtime: Path) -> Path:
    folder = runtime / f"stromboli-clusters-{os.getuid()}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def running(tmp_path: Path, runtime: Path) -> Iterator[DataFolder]:
    folder = DataFolder(tmp_path / "data")
    folder.announce("https://127.0.0.1:1")
    yield folder
    folder.release()


def test_a_link_in_the_place_of_the_list_is_not_followed(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "documents"
    precious.mkdir()
    for name in ("package.json", "1.json"):
        (precious / name).write_text("{}")
    (runtime / f"stromboli-clusters-{os.getuid()}").symlink_to(precious)
    with pytest.raises(FolderError, match="not a folder of yours"):
        running_clusters()
    monkeypatch.delenv("KUBECONFIG", raising=False)
    done = CliRunner().invoke(app, ["status"], catch_exceptions=False)
    assert (done.exit_code, "XDG_RUNTIME_DIR" in done.output) == (2, True)
    assert len(list(precious.iterdir())) == 2


def test_without_a_temporary_directory_no_local_cluster_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", missing)
    assert running_clusters() == []
    with pytest.raises(FolderError, match="no cluster runs"):
        find_cluster(None)


def test_listing_clusters_writes_nothing(runtime: Path) -> None:
    runtime.chmod(0o500)
    assert running_clusters() == []
    assert list(runtime.iterdir()) == []


def test_only_own_files_by_the_number_of_a_process_are_deleted(tmp_path: Path, index: Path) -> None:
    precious = tmp_path / "precious.json"
    precious.write_text("{}")
    (index / f"{GONE}.json").symlink_to(precious)
    (index / "notes.json").write_text("mine")
    (index / f"{GONE - 1}.json").mkdir()
    os.mkfifo(index / f"{GONE - 2}.json")
    (index / f"{os.getpid()}.json").write_text("half an ent")
    (index / f"{GONE - 3}.json").write_text("nonsense")
    (index / f"{GONE - 4}.json").write_text(json.dumps({"pid": GONE - 4, "data": "/nowhere"}))
    assert running_clusters() == []
    assert precious.exists()
    left = {f"{GONE}.json", "notes.json", f"{GONE - 1}.json", f"{GONE - 2}.json", f"{os.getpid()}.json"}
    assert {entry.name for entry in index.iterdir()} == left


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_list_that_others_may_write_is_not_believed(index: Path, mode: int) -> None:
    index.chmod(mode)
    with pytest.raises(FolderError, match="others may write there"):
        running_clusters()


def test_a_list_of_somebody_else_is_not_believed(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: user)
    (runtime / f"stromboli-clusters-{user}").mkdir(mode=0o700)
    with pytest.raises(FolderError, match="belongs to somebody else"):
        running_clusters()


def test_the_list_and_its_entries_are_for_their_owner_alone(running: DataFolder, runtime: Path) -> None:
    (entry,) = runtime.rglob("*.json")
    assert entry.stat().st_mode & 0o777 == 0o600
    assert entry.parent.stat().st_mode & 0o777 == 0o700
    assert (running.path / "lock").stat().st_mode & 0o777 == 0o600


def test_of_two_clusters_that_of_kubeconfig_is_stopped(
    running: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is a process of its own, which waits for its end."""
    command = [sys.executable, "-c", SECOND_CLUSTER, str(tmp_path / "second")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
        done = CliRunner().invoke(app, ["down"])
        assert (done.exit_code, "2 clusters run; say which one with --data" in done.output) == (2, True)
        copied = tmp_path / "copied"
        copied.write_text(
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
            "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:2'}}]\nusers: [{name: u, user: {}}]\n"
        )
        monkeypatch.setenv("KUBECONFIG", str(copied))
        done = CliRunner().invoke(app, ["down"], catch_exceptions=False)
        assert (done.exit_code, done.output) == (0, f"stopped https://127.0.0.1:2 ({tmp_path / 'second'})\n")
        assert [cluster.url for cluster in running_clusters()] == ["https://127.0.0.1:1"]


@pytest.mark.parametrize("pid", [-1, 0, 2**40, "1", None, 1.5])
def test_a_record_with_a_number_that_is_no_process_is_no_record(running: DataFolder, pid: object) -> None:
    """A signal to process -1 would reach everything that its sender may end."""
    (running.path / "lock").write_text(json.dumps({"pid": pid, "data": str(running.path)}))
    with pytest.raises(FolderError, match="no cluster runs there"):
        find_cluster(running.path)


def test_a_lock_speaks_for_processes_of_its_owner_alone(running: DataFolder) -> None:
    if os.getuid() == 0:
        os.chown(running.path / "lock", 12345, -1)
    else:
        (running.path / "lock").write_text(json.dumps({"pid": 1, "data": str(running.path)}))
    with pytest.raises(FolderError, match="no cluster runs there"):
        find_cluster(running.path)


def test_what_does_not_live_needs_no_stopping(tmp_path: Path) -> None:
    assert stop_cluster(RunningCluster(GONE, str(tmp_path)))
