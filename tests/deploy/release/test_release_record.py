"""The record, the sums and the signature."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.release.release_plan import ReleaseError, Result, not_checked, passed
from deploy.release.release_record import Entry, publishing, sign, write_record, write_sums
from tests.deploy.release.small_repository import SmallRepository
from tests.docs.pages import ROOT, blocks, commands

ENTRIES = [Entry("tree", passed("clean"), 0.1), Entry("image", not_checked("there is no engine"), 0.2)]


@pytest.fixture
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen here")
    path = tmp_path_factory.mktemp("keys") / "release-key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@pytest.fixture
def sealed(repository: SmallRepository, key: Path) -> SmallRepository:
    """With a file, the record, the sums and a signature."""
    release = repository.release(sign_with=str(key))
    release.out.mkdir()
    (release.out / "stromboli-1.2.3.tar.gz").write_bytes(b"files")
    write_record(release, ENTRIES)
    write_sums(release)
    assert sign(release).result is Result.PASSED
    return repository


def test_the_record_tells_who_what_and_what_was_not_checked(sealed: SmallRepository) -> None:
    record = json.loads((sealed.root / "dist" / "release.json").read_text())
    assert record["signedOffBy"] == "Ann <ann@example.com>"
    assert record["commit"] == sealed.release().commit
    assert record["steps"][1] == {
        "step": "image",
        "result": "not checked",
        "detail": "there is no engine",
        "notChecked": ["there is no engine"],
    }
    assert [file["name"] for file in record["files"]] == ["stromboli-1.2.3.tar.gz"]
    table = (sealed.root / "dist" / "release.txt").read_text()
    assert "Not checked:\n- image: there is no engine\n" in table


def documented(word: str) -> str:
    """The command of docs/releasing.md that begins with a word."""
    text = (ROOT / "docs" / "releasing.md").read_text()
    lines = [
        command.line
        for block in blocks(text)
        if block.mark == "on: a clean clone"
        for command in commands(block.body)
    ]
    (line,) = (line for line in lines if shlex.split(line)[0] == word)
    return line


def typed(line: str, folder: Path) -> int:
    return subprocess.run(["sh", "-c", line], cwd=folder, check=False, capture_output=True).returncode


def test_others_verify_the_files_as_documented(sealed: SmallRepository, key: Path) -> None:
    dist = sealed.root / "dist"
    (dist / "allowed_signers").write_text(f"ann@example.com {key.with_suffix('.pub').read_text()}")
    for word in ("sha256sum", "ssh-keygen"):
        assert typed(documented(word), dist) == 0
    (dist / "stromboli-1.2.3.tar.gz").write_bytes(b"other files")
    assert typed(documented("sha256sum"), dist) != 0
    (dist / "SHA256SUMS").write_text("")
    assert typed(documented("ssh-keygen"), dist) != 0


def test_a_key_that_is_not_there_is_named(repository: SmallRepository, key: Path) -> None:
    (repository.root / "dist").mkdir()
    with pytest.raises(ReleaseError, match="nowhere: there is no such key"):
        sign(repository.release(sign_with="nowhere"))
    write_record(repository.release(), ENTRIES)
    write_sums(repository.release())
    key.with_suffix(".pub").unlink()
    with pytest.raises(ReleaseError, match="the public half of the key is missing"):
        sign(repository.release(sign_with=str(key)))


def test_without_a_key_the_record_says_that_nothing_was_signed(sealed: SmallRepository) -> None:
    assert sign(sealed.release()).result is Result.NOT_CHECKED
    assert not (sealed.root / "dist" / "SHA256SUMS.sig").exists(), "that of an earlier release"


def test_publishing_is_left_to_a_person(repository: SmallRepository) -> None:
    lines = publishing(repository.release())
    assert [line.split()[0] for line in lines] == ["git", "twine", "podman", "podman", "helm"]
