"""What admission refuses, as `stromboli job` and `stromboli queue` tell it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.commanding import CommandCluster, job_manifest
from tests.kubernetes.controlplane import ControlPlane

SPACE = "default"


@pytest.fixture
def cluster(admitting_plane: ControlPlane, tmp_path: Path) -> CommandCluster:
    return CommandCluster(tmp_path, admitting_plane)


def test_a_closing_queue_cannot_be_changed_and_the_way_out_is_told(cluster: CommandCluster) -> None:
    cluster.output("queue", "create", "leaving", "weight=2")
    cluster.patch("queues", "leaving", {"status": {"state": "Closing"}}, "", "status")
    refused = cluster.run("queue", "set", "leaving", "weight=3")
    assert refused.exit_code == 1
    assert "is Closing, and such a queue cannot be changed: wait until it is Closed" in refused.stderr
    assert "`stromboli queue close leaving --wait`" in refused.stderr


@pytest.mark.smoke
def test_shares_that_do_not_fit_into_the_parent_are_refused_with_the_reason(cluster: CommandCluster) -> None:
    cluster.output("queue", "create", "narrow-parent", "deserved=cpu=4")
    for dry_run in ((), ("--dry-run=server",)):
        refused = cluster.run(
            "queue", "create", "wide-child", "--parent=narrow-parent", "--deserved=cpu=8", *dry_run
        )
        assert refused.exit_code == 1
        assert "sum of children's deserved" in refused.stderr
    assert "wide-child" not in cluster.names("queues")
    assert cluster.output(
        "queue", "create", "wide-child", "--parent=narrow-parent", "--deserved=cpu=8", "--dry-run=client"
    )


def test_jobs_for_a_queue_that_is_closed_or_missing_are_refused(cluster: CommandCluster) -> None:
    manifest = yaml.safe_dump(job_manifest("lost", queue="nowhere"))
    refused = cluster.run("job", "run", "-f", "-", "-n", SPACE, stdin=manifest)
    assert (refused.exit_code, "nowhere" in refused.stderr) == (1, True), refused.output


def test_scaling_down_takes_the_minimums_along_that_admission_filled_in(cluster: CommandCluster) -> None:
    cluster.output("queue", "create", "open-queue")
    cluster.patch("queues", "open-queue", {"status": {"state": "Open"}}, "", "status")
    manifest = json.dumps(job_manifest("gang", 4, queue="open-queue"))
    cluster.output("job", "run", "-f", "-", "-n", SPACE, stdin=manifest)
    scaled = cluster.output("job", "scale", "gang", "-r", 2, "-n", SPACE)
    assert "worker replicas 4 -> 2, worker minAvailable 4 -> 2, minAvailable 4 -> 2" in scaled
    spec = cluster.read("jobs", "gang", SPACE)["spec"]
    assert (spec["minAvailable"], spec["tasks"][0]["minAvailable"]) == (2, 2)
    cluster.output("job", "delete", "gang", "-n", SPACE)
