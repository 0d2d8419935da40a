"""Kubeconfig files as people have them, and as they should not be: an access, or a sentence that says what to mend."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from stromboli.kube.cluster_access import Trust, find_access
from stromboli.kube.credentials import (
    REREAD_INTERVAL,
    VERSIONS,
    BadConfig,
    ExecCredentials,
    ExecPart,
    FileCredentials,
    Identity,
    NoCredentials,
    parse_exec_credential,
)
from tests.serving import CERTIFICATE

PEM = base64.b64encode(CERTIFICATE.read_bytes()).decode()


def config(cluster: Any = None, user: Any = None, **others: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        **others,
    }


def written(folder: Path, content: Any, name: str = "config") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def identity(folder: Path, user: dict[str, Any]) -> Identity:
    access = find_access(written(folder, config(user=user)))
    return asyncio.run(access.credentials.identity())


def headers(folder: Path, user: dict[str, Any]) -> list[tuple[str, str]]:
    return list(identity(folder, user).headers)


# -- where


def test_the_current_context_says_where_and_who(tmp_path: Path) -> None:
    access = find_access(written(tmp_path, config(user={"token": "secret"})))
    assert (access.server, access.namespace) == ("https://10.0.0.1:6443", "team")
    assert access.trust.verify
    assert "secret" not in repr(access)


def test_another_context_may_be_asked_for(tmp_path: Path) -> None:
    there = {"name": "there", "context": {"cluster": "d", "user": "u"}}
    content = config()
    content["contexts"].append(there)
    content["clusters"].append({"name": "d", "cluster": {"server": "https://other"}})
    assert find_access(written(tmp_path, content), context="there").server == "https://other"


def test_a_server_behind_a_path_keeps_it(tmp_path: Path) -> None:
    path = written(tmp_path, config({"server": "https://rancher/k8s/clusters/c-1/"}))
    assert find_access(path).server == "https://rancher/k8s/clusters/c-1"


def test_yaml_with_nulls_and_unknown_fields_is_read(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: Config
preferences: {}
current-context: here
extensions: null
contexts:
- name: here
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster: {server: "https://10.0.0.1", extensions: [{name: minikube, extension: {version: 1}}]}
users:
- name: u
  user: {token: abc, exec: null}
"""
    assert find_access(written(tmp_path, text)).server == "https://10.0.0.1"


def test_files_of_the_environment_are_merged_and_the_first_counts(tmp_path: Path) -> None:
    first = config({"server": "https://first"})
    first["users"] = None
    second = config({"server": "https://second"}, {"token": "of-the-second"})
    paths = [written(tmp_path, first, "a"), str(tmp_path / "missing"), written(tmp_path, second, "b")]
    access = find_access(environment={"KUBECONFIG": os.pathsep.join(paths)})
    assert access.server == "https://first"
    assert asyncio.run(access.credentials.identity()).headers == (("Authorization", "Bearer of-the-second"),)


def test_the_file_in_the_home_folder_comes_last(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube", config())
    assert find_access(environment={"HOME": str(tmp_path)}).server == "https://10.0.0.1:6443"


def test_in_a_pod_the_service_account_is_used_and_its_token_read_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "namespace").write_text("volcano-system")
    (tmp_path / "ca.crt").write_bytes(CERTIFICATE.read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = find_access(environment=environment, service_account=tmp_path)
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "volcano-system")
    assert access.trust.authorities

    async def later() -> None:
        assert (await access.credentials.identity()).headers == (("Authorization", "Bearer one"),)
        (tmp_path / "token").write_text("two")
        assert (await access.credentials.identity()).headers == (("Authorization", "Bearer one"),)
        assert access.credentials.rejected()
        assert (await access.credentials.identity()).headers == (("Authorization", "Bearer two"),)
        assert not access.credentials.rejected()

    asyncio.run(later())


def test_a_token_file_is_read_again_after_a_while_and_kept_if_it_vanishes(tmp_path: Path) -> None:
    file, now = tmp_path / "token", [0.0]
    file.write_text("one")
    files = FileCredentials(token=file, clock=lambda: now[0])
    file.write_text("two")
    now[0] = REREAD_INTERVAL
    assert asyncio.run(files.identity()).headers == (("Authorization", "Bearer two"),)
    file.unlink()
    now[0] = 2 * REREAD_INTERVAL
    assert asyncio.run(files.identity()).headers == (("Authorization", "Bearer two"),)


# -- trust


def test_authorities_may_stand_in_the_file_or_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(CERTIFICATE.read_bytes())
    beside = find_access(written(tmp_path, config({"certificate-authority": "ca.pem"})))
    inside = find_access(written(tmp_path, config({"certificate-authority-data": PEM})))
    assert beside.trust == inside.trust


def test_no_verification_is_honoured_and_loudly_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        access = find_access(written(tmp_path, config({"insecure-skip-tls-verify": True})))
    assert not access.trust.verify
    assert "INSECURE" in caplog.text


# -- who


def test_each_way_to_say_who_we_are(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("from-file\n")
    assert headers(tmp_path, {}) == []
    assert headers(tmp_path, {"token": "abc"}) == [("Authorization", "Bearer abc")]
    assert headers(tmp_path, {"token": "abc", "tokenFile": "t"}) == [("Authorization", "Bearer from-file")]
    assert headers(tmp_path, {"username": "me", "password": "x"}) == [("Authorization", "Basic bWU6eA==")]
    assert headers(tmp_path, {"token": "abc", "as": "other", "as-groups": ["g"]}) == [
        ("Authorization", "Bearer abc"),
        ("Impersonate-User", "other"),
        ("Impersonate-Group", "g"),
    ]


def test_a_certificate_may_stand_in_the_file_or_beside_it(tmp_path: Path) -> None:
    (tmp_path / "both.pem").write_bytes(CERTIFICATE.read_bytes())
    inside = identity(tmp_path, {"client-certificate-data": PEM, "client-key-data": PEM})
    beside = identity(tmp_path, {"client-certificate": "both.pem", "client-key": "both.pem"})
    assert inside.certificate is not None
    assert inside.certificate == beside.certificate
    assert "PRIVATE" not in repr(inside)


@pytest.mark.skipif(sys.platform != "linux", reason="uses a file in memory")
def test_a_certificate_needs_no_writable_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the read-only root of a pod."""
    inside = identity(tmp_path, {"client-certificate-data": PEM, "client-key-data": PEM})

    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", missing)
    before = len(os.listdir("/proc/self/fd"))
    Trust().context(inside.certificate)
    assert len(os.listdir("/proc/self/fd")) == before


# -- programs


def program(folder: Path, script: str) -> dict[str, Any]:
    path = folder / "plugin.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh"}}


def exec_part(command: str, *arguments: str) -> ExecPart:
    return ExecPart(command, VERSIONS[0], arguments, install_hint="get it at example.org")


def answer(**status: str) -> str:
    version = "client.authentication.k8s.io/v1"
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def test_a_program_says_who_we_are(tmp_path: Path) -> None:
    user = program(tmp_path, f"echo '{answer(token='abc')}'")
    assert headers(tmp_path, user) == [("Authorization", "Bearer abc")]


def test_a_program_is_told_what_is_wanted_and_gets_its_environment(tmp_path: Path) -> None:
    user = program(
        tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > info; echo "$1 $MODE" > said; echo \'{answer(token="t")}\''
    )
    user["exec"] |= {"args": ["login"], "env": [{"name": "MODE", "value": "ci"}], "provideClusterInfo": True}
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        headers(tmp_path, user)
    finally:
        os.chdir(before)
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"]["cluster"]["server"] == "https://10.0.0.1:6443"
    assert info["spec"]["interactive"] is False
    assert (tmp_path / "said").read_text() == "login ci\n"


def test_a_program_is_asked_again_only_when_needed(tmp_path: Path) -> None:
    expires = answer(token="t", expirationTimestamp="2026-01-01T00:01:00Z")
    program(tmp_path, f"echo x >> asked; echo '{expires}'")
    now = [1767225600.0]  # 2026-01-01T00:00:00Z
    exec = ExecCredentials(exec_part("/bin/sh", "-c", f"cd {tmp_path}; ./plugin.sh"), wall=lambda: now[0])

    def asked() -> int:
        asyncio.run(exec.identity())
        return len((tmp_path / "asked").read_text().splitlines())

    assert [asked(), asked()] == [1, 1]
    now[0] += 55
    assert asked() == 2
    now[0] -= 55
    assert exec.rejected()
    assert asked() == 3


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 3", "exited with status 3: no output"),
        ("echo please log in >&2; exit 1", "please log in"),
        ("echo hello", "printed no ExecCredential"),
        ("echo '{}'", "printed ? of ?"),
        (f"echo '{answer()}'", "neither token nor certificate"),
        (f"echo '{answer(clientCertificateData='x')}'", "certificate without key"),
        ("sleep 30", "no answer within 0.5 seconds"),
        ("head -c 3000000 /dev/zero", "printed more than"),
    ],
)
def test_a_program_that_fails_is_named_with_the_reason(tmp_path: Path, script: str, problem: str) -> None:
    exec = ExecCredentials(exec_part("/bin/sh", "-c", script), timeout=0.5 if "sleep" in script else 20)
    with pytest.raises(NoCredentials, match="/bin/sh: ") as failed:
        asyncio.run(exec.identity())
    assert problem in str(failed.value)


def test_a_missing_program_comes_with_its_hint() -> None:
    exec = ExecCredentials(exec_part("no-such-program-anywhere"))
    with pytest.raises(NoCredentials, match=r"no-such-program-anywhere: .*; get it at example\.org"):
        asyncio.run(exec.identity())


def test_a_program_may_answer_with_a_certificate() -> None:
    text = answer(clientCertificateData="chain", clientKeyData="key")
    identity, until = parse_exec_credential(text.encode(), exec_part("p"))
    assert identity.certificate is not None
    assert (identity.headers, until) == ((), None)


# -- what is wrong


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "expected one mapping"),
        ("[]", "expected one mapping"),
        ("{", "not YAML|line"),
        ("a: b\n---\nc: d", "expected one mapping"),
        ({"kind": "Pod"}, "kind 'Pod' is no kubeconfig"),
        (config(clusters=7), "clusters: expected array"),
        (config(users=[{"user": {}}]), r"users\[0\].name: is missing"),
        (config({"server": 5}), "server: expected str"),
        (config(**{"current-context": ""}), "current-context: missing"),
        (config(**{"current-context": "gone"}), "no 'gone'; there is here"),
        (config(clusters=[]), "no 'c', which context 'here' names; there is none"),
        (config(users=[]), "no 'u', which context 'here' names"),
        (config({"server": ""}), "'' is no address like https://host:port"),
        (config({"server": "ftp://x"}), "is no address"),
        (config({"server": "https://user:pw@host"}), "is no address"),
        (config({"server": "https://host:port"}), "is no address"),
        (config({"certificate-authority": "gone.pem"}), "gone.pem: cannot be read"),
        (config({"certificate-authority-data": "%%%"}), "certificate-authority-data: not base64"),
        (config({"certificate-authority-data": "aGVsbG8="}), "certificate-authority: no PEM"),
        (config({"certificate-authority-data": PEM, "insecure-skip-tls-verify": True}), "remove one of them"),
        (config({"proxy-url": "socks5://p"}), "only http and https proxies"),
        (config(user={"token": "a\nb"}), "token: not a token"),
        (config(user={"tokenFile": "gone"}), "gone: cannot be read"),
        (config(user={"client-certificate-data": PEM}), "client-key: missing"),
        (config(user={"client-key-data": PEM}), "client-certificate: missing"),
        (config(user={"client-certificate-data": "aGk=", "client-key-data": "aGk="}), "cannot be used"),
        (config(user={"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
        (config(user={"as-groups": ["g"]}), "only together with as"),
        (config(user={"exec": {"command": "x", "apiVersion": "v0"}}), "exec.apiVersion 'v0'"),
        (config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}), "exec.command: missing"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path: Path, content: Any, problem: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadConfig, match=problem) as failed:
        find_access(path)
    assert str(failed.value).startswith(f"{path}: ") or "gone" in problem


def test_without_any_configuration_the_way_out_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="give --kubeconfig FILE, set KUBECONFIG, or run in a cluster"):
        find_access(environment={"HOME": str(tmp_path)})
    with pytest.raises(BadConfig, match="cannot be read"):
        find_access(str(tmp_path / "nothing"))
