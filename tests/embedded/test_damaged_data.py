"""A data folder that is damaged: the server says which file, what is wrong and the remedy, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from typer.testing import CliRunner

from stromboli.cli.main import app
from stromboli.daemon.certificates import new_authority
from stromboli.embedded.auth.identity import Tokens
from stromboli.embedded.data_files import DataError
from stromboli.embedded.http.api_server import ApiServer
from tests.embedded.api_requests import config_map, running

MAPS = "/api/v1/namespaces/default/configmaps"
OBJECTS = "objects.db"


@pytest.fixture(scope="session")
def sound_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a server with some objects."""
    folder = tmp_path_factory.mktemp("sound") / "data"

    async def scenario() -> None:
        async with running(folder, tls=False) as api:
            for number in range(60):
                await api.post(MAPS, config_map(f"m{number:02}", {"a": "x" * 20_000}))

    asyncio.run(scenario())
    return folder


@pytest.fixture
def data(sound_folder: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(sound_folder, tmp_path / "data"))


def start(folder: Path) -> None:
    async def scenario() -> None:
        async with ApiServer(folder, tls=False):
            pass

    asyncio.run(scenario())


def refusal(folder: Path) -> str:
    """Why a server does not start."""
    with pytest.raises(DataError) as refused:
        start(folder)
    return str(refused.value)


def change(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / OBJECTS) as db:
        db.execute(statement, values)
    db.close()


# -- the database


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"no database at all")


def overwrite_middle(path: Path) -> None:
    """Some pages, whatever they are: an inner page of the table is among them."""
    chance = random.Random(1)
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(chance.randbytes(64))


@pytest.mark.parametrize("damage", [truncate, overwrite_header, overwrite_middle])
def test_a_damaged_database_is_named_with_the_way_out(data: Path, damage: Callable[[Path], None]) -> None:
    damage(data / OBJECTS)
    size = (data / OBJECTS).stat().st_size
    assert re.match(rf"{data}/{OBJECTS}: .*damaged: .*restore .* from a copy, or", refusal(data))
    assert (data / OBJECTS).stat().st_size == size


def test_a_database_of_another_program_is_refused(data: Path) -> None:
    change(data, "ALTER TABLE versions RENAME COLUMN data TO content")
    assert "is damaged: no such column: data" in refusal(data)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"metadata":{', "Input data was truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `metadata`"),
        (b'{"metadata":{"labels":5}}', "Expected `object | null`, got `int`"),
        (b'{"metadata":{"resourceVersion":"7"}}', "its resourceVersion is another one"),
        (b"\xff\xfe", "JSON is malformed"),
        ("{}", "not an object as it was written"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_row_is_named_and_never_left_out(data: Path, content: object, problem: str) -> None:
    change(data, "UPDATE versions SET data = ? WHERE name = 'm30'", content)
    message = refusal(data)
    row = re.match(rf"{data}/{OBJECTS}: row (\d+) \(configmaps default/m30\) is damaged: ", message)
    assert row is not None
    assert problem in message
    remedy = re.search(
        rf'sqlite3 {data}/{OBJECTS} "(DELETE FROM versions WHERE revision = {row[1]})"', message
    )
    assert remedy is not None
    change(data, remedy[1])

    async def scenario() -> None:
        async with running(data, tls=False) as api:
            assert len((await api.get(MAPS))["items"]) == 59

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("resource", "field"),
    [
        ("clusterroles.rbac.authorization.k8s.io", "rules"),
        ("clusterrolebindings.rbac.authorization.k8s.io", "subjects"),
        ("clusterrolebindings.rbac.authorization.k8s.io", "roleRef"),
        ("customresourcedefinitions.apiextensions.k8s.io", "spec"),
    ],
)
def test_an_object_that_the_server_itself_cannot_understand_is_named(
    data: Path, resource: str, field: str
) -> None:
    content = {"metadata": {"name": "odd", "resourceVersion": "9999"}, field: 5}
    row = (9999, resource, "", "odd", 0, json.dumps(content).encode())
    change(data, "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", *row)
    assert f"row 9999 ({resource} odd) is damaged: " in refusal(data)


def test_objects_of_a_kind_that_is_not_known_are_kept_and_told(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = (
        9999,
        "gadgets.example.com",
        "default",
        "g",
        0,
        b'{"metadata":{"name":"g","resourceVersion":"9999"}}',
    )
    change(data, "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", *row)
    start(data)
    assert "gadgets.example.com (1)" in caplog.text
    with sqlite3.connect(data / OBJECTS) as db:
        assert db.execute("SELECT count(*) FROM versions WHERE name = 'g'").fetchone() == (1,)
    db.close()


# -- keys and tokens


def pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, password: bytes = b"") -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("ca.key", b"nonsense"),
        ("ca.key", b""),
        ("ca.crt", b"nonsense"),
        ("ca.key", pem(ec.generate_private_key(ec.SECP256R1()))),
        ("ca.key", pem(ec.generate_private_key(ec.SECP256R1()), b"password")),
        ("ca.key", pem(rsa.generate_private_key(65537, 2048))),
        ("ca.key", None),
    ],
    ids=["no key", "empty key", "no certificate", "another key", "password", "rsa", "missing key"],
)
def test_keys_that_do_not_fit_are_named(data: Path, file: str, content: bytes | None) -> None:
    path = data / "pki" / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    message = refusal(data)
    assert f"{data}/pki/{file}: " in message
    assert "https://" not in message
    assert f"delete {data}/pki/ca.crt and {data}/pki/ca.key: new ones are made" in message
    for name in ("ca.crt", "ca.key"):
        (data / "pki" / name).unlink(missing_ok=True)
    start(data)


@pytest.mark.parametrize("begin", [timedelta(days=-20), timedelta(days=20)])
def test_an_authority_that_is_not_valid_now_is_named_with_its_days(data: Path, begin: timedelta) -> None:
    pair = new_authority("old", datetime.now(UTC) + begin, timedelta(days=10))
    (data / "pki" / "ca.crt").write_bytes(pair.certificate)
    (data / "pki" / "ca.key").write_bytes(pair.key)
    assert re.match(rf"{data}/pki/ca.crt: valid from .* to .*; set the clock", refusal(data))


@pytest.mark.parametrize("file", ["token", "signing"])
@pytest.mark.parametrize(
    "content", [b"", b" \n\t", b"secret", b"\0" * 5, "ä".encode() * 32, b"two words" * 9]
)
def test_a_secret_that_could_be_guessed_is_refused(data: Path, file: str, content: bytes) -> None:
    (data / "pki" / file).write_bytes(content)
    message = refusal(data)
    assert message.startswith(f"{data}/pki/{file}: ")
    assert "delete it: another one is made" in message


def test_an_empty_token_is_nobody(tmp_path: Path) -> None:
    for key, admin in ((b"", "a" * 32), (b"k" * 32, "")):
        with pytest.raises(ValueError, match="at least 16 characters"):
            Tokens(key, admin)

    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            for token in ("", " ", "\t "):
                review = {"spec": {"token": token}}
                answer = await api.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
                assert answer["status"] == {"authenticated": False}
                assert (await api.request("GET", MAPS, token=token))[0] == 401

    asyncio.run(scenario())


def test_secrets_are_on_the_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file is synchronized before its rename, and its folder after it; nobody else may read it at any time."""
    steps: list[tuple[str, str]] = []
    fsync, rename = os.fsync, Path.rename

    def traced_fsync(file: int) -> None:
        path = os.readlink(f"/proc/self/fd/{file}")
        if not Path(path).is_dir():
            assert os.fstat(file).st_mode & 0o777 == 0o600
        steps.append(("fsync", path))
        fsync(file)

    def traced_rename(path: Path, target: Path) -> Path:
        steps.append(("rename", str(path)))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", traced_fsync)
    monkeypatch.setattr(Path, "rename", traced_rename)

    async def scenario() -> None:
        async with ApiServer(tmp_path) as server:
            server.write_kubeconfig(tmp_path / "kubeconfig")

    asyncio.run(scenario())
    assert (tmp_path / f"{OBJECTS}.lock").stat().st_mode & 0o777 == 0o600
    names = ("ca.key", "ca.crt", "token", "signing", "server.key", "server.crt")
    for path in (*(tmp_path / "pki" / name for name in names), tmp_path / "kubeconfig"):
        begin = steps.index(("fsync", f"{path}.new"))
        assert steps[begin + 1 : begin + 3] == [("rename", f"{path}.new"), ("fsync", str(path.parent))]
        assert path.stat().st_mode & 0o777 == 0o600


# -- folders and disks


@pytest.mark.parametrize("name", ["pki", "pki/token", OBJECTS, f"{OBJECTS}.lock"])
def test_what_stands_in_the_way_is_named(data: Path, name: str) -> None:
    path = data / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("")
    else:
        path.unlink()
        path.mkdir()
    assert refusal(data).startswith(f"{data}/")


def run_up(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["up", *arguments], catch_exceptions=False)
    return done.exit_code, done.output


def test_up_says_so_in_one_line(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    truncate(data / OBJECTS)
    status, output = run_up("--data", str(data))
    assert (status, output.count("\n")) == (1, 1)
    assert output.startswith(f"error: cannot start: {data}/{OBJECTS}: ")
    status, output = run_up("--data", "/proc/stromboli")
    assert (status, output.count("\n")) == (2, 1)
    (tmp_path / "file").write_text("")
    status, output = run_up("--data", str(tmp_path / "file"))
    assert (status, output) == (
        2,
        f"error: {tmp_path}/file: is not a folder; take another one, or move it away\n",
    )


def test_a_disk_that_is_full_is_named(tmp_path: Path) -> None:
    """As on a full disk, no file may grow beyond a few kilobytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        [sys.executable, "-m", "stromboli.embedded", str(tmp_path / "data")],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(f"error: {tmp_path}/data/{OBJECTS}: ")
