"""Folders go whole."""

from pathlib import Path

from stromboli.embedded.folder_removal import remove_tree


def test_a_folder_goes_even_if_nobody_may_write_to_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").touch()
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").touch()
    (folder / "a" / "link").symlink_to(outside)
    for path in (folder / "a" / "b", folder / "a", folder):
        path.chmod(0o500)
    remove_tree(folder)
    assert not folder.exists()
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o755
