"""One cluster per folder, and others can tell."""

import os
from pathlib import Path

import pytest

from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.running_clusters import FolderError, find_cluster, running_clusters


@pytest.fixture(autouse=True)
def own_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))


def test_a_folder_holds_one_cluster_at_a_time(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")
    first.announce("https://127.0.0.1:1234")
    with pytest.raises(FolderError, match=f"runs there already.*{os.getpid()}"):
        DataFolder(tmp_path / "data")
    first.release()
    second = DataFolder(tmp_path / "data")
    assert second.last_port == 1234
    second.release()


def test_the_only_cluster_is_found_and_of_several_one_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no cluster runs"):
        find_cluster(None)
    folder = DataFolder(tmp_path / "one")
    folder.announce("https://127.0.0.1:1")
    assert find_cluster(None).data == str(tmp_path / "one")
    assert find_cluster(tmp_path / "one").pid == os.getpid()
    with pytest.raises(FolderError, match="stromboli up --data"):
        find_cluster(tmp_path / "two")
    folder.release()
    assert running_clusters() == []


def test_a_cluster_that_was_killed_is_not_listed(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "one")
    folder.announce("https://127.0.0.1:1")
    entry = next((tmp_path / "runtime").rglob("*.json"))
    (entry.parent / "1.json").write_text(entry.read_text().replace(str(os.getpid()), "1"))
    (entry.parent / "2.json").write_text("nonsense")
    assert [running.pid for running in running_clusters()] == [os.getpid()]
    assert not (entry.parent / "1.json").exists()
    folder.release()


def test_a_temporary_folder_goes_with_its_cluster() -> None:
    folder = DataFolder(None)
    assert folder.path.is_dir()
    folder.announce("https://127.0.0.1:1")
    folder.release()
    assert not folder.path.exists()


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot be made"):
        DataFolder(tmp_path / "file" / "x")
    with pytest.raises(FolderError, match="is not a folder"):
        DataFolder(tmp_path / "file")


def test_a_folder_in_which_everybody_may_write_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.raises(FolderError, match=f"everybody may write there.*chmod o-w {open_to_all}"):
        DataFolder(open_to_all)


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep")
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(FolderError, match=f"{data}/lock: cannot be written"):
        DataFolder(data)
    assert (tmp_path / "precious").read_text() == "keep"


def test_a_file_system_that_takes_no_folder_is_named() -> None:
    with pytest.raises(
        FolderError, match=r"/proc/stromboli: cannot be made.*take a folder that you may write to"
    ):
        DataFolder(Path("/proc/stromboli"))


@pytest.mark.parametrize("record", ["", "nonsense", "[]", '{"pid": 1, "data": "x", "url": "http://[:9"}'])
def test_a_record_of_a_last_run_that_cannot_be_read_does_no_harm(tmp_path: Path, record: str) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "lock").write_text(record)
    folder = DataFolder(data)
    assert folder.last_port == 0
    folder.release()


def test_a_cluster_runs_where_it_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    folder = DataFolder(tmp_path / "data")
    folder.announce("https://127.0.0.1:1")
    assert f"by --data {tmp_path}/data alone" in caplog.text
    assert find_cluster(tmp_path / "data").pid == os.getpid()
    with pytest.raises(FolderError, match=r"cannot be listed.*--data names"):
        find_cluster(None)
    folder.release()


def test_a_folder_with_files_of_somebody_else_is_refused(tmp_path: Path) -> None:
    site = tmp_path / "www"
    site.mkdir()
    for name in ("a.html", "b.html", "c.html", "d.html"):
        (site / name).write_text("")
    with pytest.raises(
        FolderError, match=rf"{site}: .*not empty \(a.html, b.html, c.html, \.\.\.\); take an empty"
    ):
        DataFolder(site)
    assert sorted(os.listdir(site)) == ["a.html", "b.html", "c.html", "d.html"]


@pytest.mark.parametrize("mark", ["lock", "objects.db", "format.json"])
def test_a_folder_that_any_release_left_is_opened(mark: str, tmp_path: Path) -> None:
    former = tmp_path / "former"
    former.mkdir()
    (former / mark).write_text("")
    (former / "notes.txt").write_text("mine")
    DataFolder(former).release()


def test_an_empty_disk_is_as_good_as_an_empty_folder(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    (disk / "lost+found").mkdir(parents=True)
    DataFolder(disk).release()


def test_a_folder_is_known_by_its_path_without_detours(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "runtime" / ".." / "data")
    assert folder.path == tmp_path / "data"
    folder.release()
