"""The command as a user runs it, and a cluster to run it on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from stromboli.cli.main import app
from stromboli.kube.request import Backoff
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests

Run = Callable[..., Result]
_pause = Backoff.pause


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands pause a hundredth of the time after a failed request."""
    monkeypatch.setattr(Backoff, "pause", lambda *arguments: _pause(*arguments) / 100)


@pytest.fixture
def run() -> Run:
    """`run("plan", "-f", path)`; errors that are no exit are raised."""

    def invoke(*arguments: object, **more: Any) -> Result:
        return CliRunner().invoke(
            app, [str(argument) for argument in arguments], catch_exceptions=False, **more
        )

    return invoke


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes, a gang that fits, one that does not."""
    manifests = [
        *nodes("n1 cpu=4; n2 cpu=2"),
        *queues("research weight=2"),
        *job_manifests("train", queue="research", pods=3, cpu=1),
        *job_manifests("huge", pods=2, cpu=3),
    ]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return file


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.conf"
    file.write_text('actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n')
    return file
