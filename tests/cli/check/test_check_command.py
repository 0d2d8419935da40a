"""`stromboli check` on a running API server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from tests.embedded.background_server import background_server

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a server without any of Volcano's kinds."""
    folder = tmp_path_factory.mktemp("bare")
    with background_server(folder):
        yield folder / "kubeconfig"


def test_a_cluster_without_an_installation_fails_and_says_what_is_missing(
    run: Run, bare: Path, tmp_path: Path
) -> None:
    environment = {"KUBECONFIG": str(bare), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    result = run("check", "-o", "json", env=environment)
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert document["healthy"] is False
    states = {(each["check"], each["state"]) for each in document["checks"]}
    assert {("api-server", "ok"), ("clock", "ok"), ("kinds", "failed"), ("scheduler", "failed")} <= states
    table = run("check", env=environment)
    assert table.exit_code == 1
    assert "failed   kinds" in table.stdout
    assert "-> kubectl apply -k deploy/crds" in table.stdout


def test_a_server_that_does_not_answer_is_told(run: Run, bare: Path, tmp_path: Path) -> None:
    gone = tmp_path / "kubeconfig"
    gone.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", bare.read_text()))
    result = run("check", "--kubeconfig", gone, env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
