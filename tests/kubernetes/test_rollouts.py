"""Releases that follow one another on a real API server, and a takeover from Volcano that is broken off."""

from __future__ import annotations

import threading
import urllib.error

import pytest

from stromboli import __version__
from tests.kubernetes.documented_steps import PAGE, lines_of
from tests.kubernetes.volcano_cluster import BAD, GOOD, JOBS, VolcanoCluster, job

pytestmark = pytest.mark.real_only


class Submissions:
    """Jobs that are submitted, without being stored, again and again as long as something lasts."""

    def __init__(self, volcano: VolcanoCluster) -> None:
        self.answers: list[str] = []
        self._volcano = volcano
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Submissions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stopping.wait(0.2):
            try:
                self._volcano.plane.request("POST", f"{JOBS}?dryRun=All", GOOD)
                self.answers.append("created")
            except urllib.error.HTTPError as error:
                with error:
                    self.answers.append(error.read().decode())


def test_an_upgrade_from_one_release_to_the_next_is_rolled_out_without_a_pause(
    volcano: VolcanoCluster,
) -> None:
    for heading in ("Look first", "The scheduler", "The controllers", "Admission"):
        volcano.steps.follow(heading)
    volcano.wait(lambda: volcano.phase("waiting") == "Running", "the gang to start")
    old = {container.pod for container in volcano.kubelet.containers.values()}
    volcano.steps.edit_manifests(f"newTag: {__version__}", "newTag: 9.9.9")

    with Submissions(volcano) as submissions:
        for line in lines_of("Upgrades"):
            if "rollout undo" in line:
                _is_new(volcano, old)
                volcano.plane.apply(job("after-upgrade"))
                volcano.wait(lambda: volcano.phase("after-upgrade") == "Running", "a new job to start")
            volcano.steps.type(line)
    assert set(submissions.answers) == {"created"}
    volcano.wait(lambda: volcano.images("scheduler") == {f"stromboli:{__version__}"}, "new pods to go again")
    volcano.wait(lambda: len(volcano.kubelet.leaders("stromboli-scheduler")) == 1, "a leader")
    volcano.plane.apply(job("after-undo"))
    volcano.wait(lambda: volcano.phase("after-undo") == "Running", "a new job to start")
    assert volcano.running("running") == 2
    assert volcano.kubelet.failures == []


def _is_new(volcano: VolcanoCluster, old: set[str]) -> None:
    for component in ("scheduler", "controllers", "admission"):
        volcano.wait(lambda: volcano.images(component) == {"stromboli:9.9.9"}, "old pods to go")  # noqa: B023
    assert old.isdisjoint(container.pod for container in volcano.kubelet.containers.values())
    for component in ("scheduler", "controllers"):
        volcano.wait(lambda: len(volcano.kubelet.leaders(f"stromboli-{component}")) == 1, "a leader", 15)  # noqa: B023


def test_a_takeover_that_is_broken_off_lets_jobs_in_again(volcano: VolcanoCluster) -> None:
    """Admission that does not come up, and the remedy that docs/install.md names."""
    for heading in ("Look first", "Admission", "Admission"):  # any step may be repeated
        volcano.steps.follow(heading)
    volcano.steps.type("kubectl -n volcano-system scale deployment stromboli-admission --replicas=0")
    volcano.wait(lambda: "failed calling webhook" in volcano.answer_to(GOOD), "jobs to be refused")
    remedy = "kubectl delete -f deploy/admission/webhooks.yaml"
    assert f"`{remedy}`" in PAGE.read_text()
    volcano.steps.type(remedy)
    volcano.wait(lambda: "created" in volcano.answer_to(GOOD), "jobs to be taken")
    volcano.steps.type("kubectl apply -k deploy/admission")
    volcano.wait(lambda: "denied the request" in volcano.answer_to(BAD), "jobs to be checked again")
