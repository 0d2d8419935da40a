"""Volcano's own end-to-end suites pass on `stromboli up`, where `$VOLCANO_E2E` has them (see CONTRIBUTING.md)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import kubernetes
import kubernetes.client as official
import pytest

from tests.embedded.up_process import Up
from tests.embedded.volcano_commands import commands_that_end
from tests.embedded.volcano_programs import program, suite

pytestmark = [
    pytest.mark.programs("kubectl"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the client's own making
]
POLICY = """
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
"""As Volcano's suites have it, without what we do not have yet."""
NO_WORKLOADS = (
    "nothing makes the pods of Deployments, ReplicaSets, ReplicationControllers and batch/v1 Jobs here"
)
NO_IMAGES = "they wait for what the programs in their images do"
LEFT_OUT = {
    "admission": {},
    "cronjob": {},
    "jobp": {r"\brc, pg controller": NO_WORKLOADS},
    "jobseq": {"MPI|Pytorch|TensorFlow": NO_IMAGES},
    "vcctl": {},
}
"""By suite, expressions for specs that cannot pass here, and why.

The suites of the scheduler itself are not among them: they change the policy by a ConfigMap, fill nodes by pods of
another scheduler, and need volumes and Deployments.
"""
LONGEST = 3600


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_a_suite_of_volcano_passes(name: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    command = [str(suite(name)), "-ginkgo.no-color", f"-ginkgo.timeout={LONGEST}s"]
    if LEFT_OUT[name]:
        command.append(f"-ginkgo.skip={'|'.join(LEFT_OUT[name])}")
    programs = {"VC_BIN": str(Path(program("vcctl")).parent)}
    slow_start = ("--start-delay", "2s")  # some specs want to see a job while it is pending
    options = ("--nodes", "4x8cpu,32Gi", "--policy", str(tmp_path / "policy.yaml"), *slow_start)
    with Up(tmp_path / "data", *options) as cluster:
        kubernetes.config.load_kube_config(str(cluster.data / "kubeconfig"))
        with official.ApiClient() as client, commands_that_end(client):
            done = subprocess.run(
                command,
                env=cluster.environment | programs,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=LONGEST + 60,
                check=False,
            )
    assert done.returncode == 0, done.stdout[-10_000:]
