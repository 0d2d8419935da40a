"""The demo: its story, played twice as fast, and how moments of it look."""

import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from stromboli.cli.demo import frame, story, view
from stromboli.cli.demo.chronicle import Chronicle
from stromboli.embedded.nodes.node_annotations import RUN_TIME


@pytest.mark.slow
def test_the_demo_tells_its_story(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stromboli", "demo", "--speed", "2"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        check=True,
    )
    output = done.stdout
    assert done.stderr == ""
    assert "train starts: 2 pods together" in output
    assert "(reclaim for production/train)" in output
    assert "(preempt for production/incident)" in output
    assert "heartbeat starts: 1 pod" in output
    assert 'pods "greedy-0" is forbidden: exceeded quota' in output
    assert "model starts: 4 pods together" in output
    assert output.index("sweep is done") < output.index("model starts")
    assert "4 of 4 gangs ran only ever whole" in output
    assert output.count("\n  stromboli ") == 3


def test_every_chapter_has_its_manifests() -> None:
    for chapter in story.CHAPTERS:
        assert story.manifests(chapter.file), chapter.file
    files = {path.name for path in story.folder().glob("*.yaml")}
    assert files == {chapter.file for chapter in story.CHAPTERS}


def test_pods_run_so_much_faster_as_one_asks() -> None:
    slow, fast = story.manifests("03-train.yaml"), story.manifests("03-train.yaml", 4)
    assert slow[1]["metadata"]["annotations"][RUN_TIME] == "15s"
    assert fast[1]["metadata"]["annotations"][RUN_TIME] == "3.750s"


# -- frames and the chronicle


def node(name: str) -> dict:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}}


def pod(name: str, phase: str = "Running", node: str = "n1", waits: str = "") -> dict:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "annotations": {"scheduling.k8s.io/group-name": name.rpartition("-")[0]},
        },
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": "2"}}}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "False", "message": waits}],
        },
    }


def group(name: str, minimum: int, waits: str = "") -> dict:
    conditions = [{"type": "Unschedulable", "status": "True", "message": waits}] if waits else []
    return {
        "metadata": {"name": name, "namespace": "a", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"queue": "research", "minMember": minimum},
        "status": {"phase": "Pending", "conditions": conditions},
    }


QUEUES = [
    {"metadata": {"name": name}, "spec": {"weight": 1}} for name in ("research", "production", "default")
]
EVICTED = {
    "reason": "Evict",
    "involvedObject": {"kind": "Pod", "namespace": "a", "name": "gang-1"},
    "message": "Pod is evicted, because of reclaim for b/other, chosen by tier 1 (gang)",
}


def test_the_chronicle_says_what_changed() -> None:
    chronicle = Chronicle()

    def messages(now: float, pods: list, waits: str = "", events: list = []) -> list[str]:  # noqa: B006
        state = frame.build_frame([node("n1")], pods, [group("gang", 2, waits)], QUEUES, events)
        return chronicle.update(state, now)

    waiting = [pod("gang-0", "Pending", "", "no room"), pod("gang-1", "Pending", "", "no room")]
    assert messages(0, waiting, "not ready") == []
    assert messages(5, waiting, "not ready") == ["gang waits: no room"]
    assert messages(6, waiting, "not ready") == []
    assert messages(7, [pod("gang-0"), pod("gang-1")]) == ["gang starts: 2 pods together on 1 node"]
    assert messages(8, [pod("gang-0")], events=[EVICTED]) == [
        "gang loses 1 pod: gives back what it borrowed (reclaim for b/other)"
    ]
    assert messages(9, [pod("gang-0", "Succeeded")], events=[EVICTED]) == ["gang is done"]
    record = chronicle.jobs["a/gang"]
    assert (record.started, record.finished, record.evicted, record.min_running) == (7, 9, 1, 1)


def test_a_frame_shows_queues_nodes_and_jobs() -> None:
    state = frame.build_frame(
        [node("n1"), node("n2")],
        [pod("gang-0"), pod("gang-1", "Pending", "")],
        [group("gang", 2, "why")],
        QUEUES,
        [],
    )
    out = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    chronicle = Chronicle()
    chronicle.update(state, 1.0)
    out.print(view.render_frame(state, chronicle, 3.0, ["   1 s  news"]))
    out.print(view.summary(chronicle, 3.0, ["too much"]))
    out.file.close()
    text = out.export_text()
    assert "■□" in text
    assert "why" in text
    assert "n2" in text
    assert "Refused by quota: too much" in text
    bar = next(line for line in text.splitlines() if line.startswith("research"))
    assert bar.count("█") == 8
    assert bar.count("┃") == 1
