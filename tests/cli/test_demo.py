"""The demo: its story, played twice as fast, and how moments of it look."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.console import Console, Group, RenderableType

from stromboli.cli.demo import frame, story, view
from stromboli.cli.demo.chronicle import Chronicle
from stromboli.cli.demo.command import is_screen
from stromboli.cli.demo.frame import Frame
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
    assert "(reclaim for train)" in output
    assert "(preempt for incident)" in output
    assert "heartbeat starts: 1 pod" in output
    assert 'pods "greedy-0" is forbidden: exceeded quota' in output
    assert "model starts: 4 pods together" in output
    assert output.index("sweep is done") < output.index("model starts")
    assert "4 of 4 gangs (pods that start together or not at all) ran only ever whole" in output
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

    why = "PodGroup gang waits: no room; wait (pod group is not ready)"
    waiting = [pod("gang-0", "Pending", "", why), pod("gang-1", "Pending", "", why)]
    assert messages(0, waiting, "not ready") == []
    assert messages(5, waiting, "not ready") == ["gang waits: no room"]
    assert messages(6, waiting, "not ready") == []
    assert messages(7, [pod("gang-0"), pod("gang-1")]) == ["gang starts: 2 pods together on 1 node"]
    assert messages(8, [pod("gang-0")], events=[EVICTED]) == [
        "gang loses 1 pod: gives back what it borrowed (reclaim for other)"
    ]
    assert messages(9, [pod("gang-0", "Succeeded")], events=[EVICTED]) == ["gang is done"]
    record = chronicle.jobs["a/gang"]
    assert (record.started, record.finished, record.evicted, record.min_running) == (7, 9, 1, 1)


def shown(renderable: RenderableType, encoding: str = "utf-8") -> list[str]:
    """The lines of what is printed on a terminal of 80 columns without colours."""
    out = Console(width=80, file=io.TextIOWrapper(io.BytesIO(), encoding), color_system=None)
    out.print(renderable)
    out.file.flush()
    assert isinstance(out.file, io.TextIOWrapper)
    return out.file.buffer.getvalue().decode(encoding).splitlines()  # type: ignore[attr-defined]


def test_a_frame_shows_machines_teams_and_jobs() -> None:
    chronicle = Chronicle()
    before = [pod("gang-0"), pod("gang-1", "Pending", ""), pod("gang-2", "Pending", "n2")]
    for pods in (before, before[:2]):  # one gives way
        state = frame.build_frame([node("n1"), node("n2")], pods, [group("gang", 2, "why")], QUEUES, [])
        chronicle.update(state, 1.0)
    lines = shown(view.render_frame(state, chronicle, 3.0, ["   1 s  news"]))
    assert lines[0].split() == ["Two", "teams", "share", "2", "machines", "of", "4", "CPUs", "3", "s"]
    assert lines[1] == "n1 RR..  n2 ...."
    assert "R a CPU of research" in lines[2]
    [team] = [line for line in lines if "█" in line and "CPUs" in line]
    assert team.split() == ["research", "██░░┃░░░░", "uses", "2", "CPUs,", "fair", "share", "4"]
    [job] = [line for line in lines if line.startswith("gang")]
    assert job.split(maxsplit=3) == ["gang", "research", "■□✗", "0 of 3 pods run, 2 must start together"]
    assert "■ runs   □ waits   ▫ starts   ✓ done   ✗ gave way" in "\n".join(lines)
    assert lines[-1] == "   1 s  news"
    end = shown(view.summary(chronicle, ["too much"]))
    assert "Refused: too much" in end


def test_the_counts_of_a_job_are_of_all_its_pods_from_first_to_last() -> None:
    chronicle, states = Chronicle(), []
    for pods in (
        [pod("gang-0", "Pending", ""), pod("gang-1", "Pending", "")],
        [pod("gang-0"), pod("gang-1")],
        [pod("gang-0")],
        [pod("gang-0", "Succeeded")],
    ):
        state = frame.build_frame([node("n1")], pods, [group("gang", 2)], QUEUES, [])
        chronicle.update(state, 1.0)
        lines = shown(view.render_frame(state, chronicle, 1.0, []))
        states += [line[37:] for line in lines if line.startswith("gang")]
    assert states == [
        "0 of 2 pods run, 2 must start together",
        "2 of 2 pods run",
        "1 of 2 pods run",
        "done, 1 of 2 pods",
    ]


def crowded_frame() -> tuple[Frame, Chronicle]:
    """As many nodes and jobs as the story has, with the longest names."""
    names = ["sweep", "nightly", "train", "incident", "heartbeat", "model", "greedy"]
    pods = [pod(f"{name}-{index}", "Pending", "") for name in names for index in range(12)]
    for index, placed in enumerate(pods[:16]):  # two on each node, which is full with them
        placed["spec"]["nodeName"] = f"n{index % 8 + 1}"
    nodes = [node(f"n{number}") for number in range(1, 9)]
    state = frame.build_frame(nodes, pods, [group(name, 12) for name in names], QUEUES, [])
    chronicle = Chronicle()
    chronicle.update(state, 0.0)
    return state, chronicle


@pytest.mark.parametrize("marks", [view.UNICODE, view.ASCII])
def test_a_frame_fits_a_terminal_of_80_columns_and_24_lines_with_nothing_cut(marks: view.Marks) -> None:
    state, chronicle = crowded_frame()
    messages = [view.timestamped(number, f"message {number} " + "word " * 20) for number in range(9)]
    lines = shown(view.render_frame(state, chronicle, 59.0, messages, marks), "utf-8")
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert [line for line in lines if line.lstrip().startswith("8 s  message 8")]
    assert "".join(lines).count("word") == 40  # the two latest messages, each in full
    end = shown(Group(view.summary(chronicle, ["quota " * 25]), view.next_steps()))
    assert len(end) <= 24
    assert max(map(len, end)) <= 80


def test_ascii_marks_need_no_unicode() -> None:
    state, chronicle = crowded_frame()
    assert all(line.isascii() for line in shown(view.render_frame(state, chronicle, 1.0, [], view.ASCII)))


@pytest.mark.parametrize(
    ("terminal", "drawn"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "COLUMNS": "79"}, False),
        ({"TERM": "xterm", "LINES": "23"}, False),
    ],
)
def test_frames_are_drawn_only_where_they_fit(
    monkeypatch: pytest.MonkeyPatch, terminal: dict[str, str], drawn: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    environment = {"COLUMNS": "80", "LINES": "24", **terminal}
    out = Console(file=io.StringIO(), force_terminal=True, _environ=environment)
    assert is_screen(out) is drawn
    assert not is_screen(Console(file=io.StringIO(), _environ=environment))


@pytest.mark.slow
def test_on_a_real_terminal_no_frame_is_wider_or_higher_than_that(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.chdir(tmp_path)
        os.execve(sys.executable, [sys.executable, "-m", "stromboli", "demo", "--speed", "4"], environment)
    output = b"".join(iter(lambda: read(terminal), b"")).decode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, output
    frames = [PLAIN.sub("", part).strip("\r\n") for part in REDRAWN.split(output)]
    sizes = [(max(map(len, lines)), len(lines)) for text in frames if (lines := text.split("\r\n"))]
    assert len(frames) > 10
    assert max(width for width, _ in sizes) <= 80
    assert max(height for _, height in sizes) <= 23
    assert "Two teams share 8 machines of 4 CPUs" in frames[1]
    assert "What became of the jobs" in frames[-1]


REDRAWN = re.compile(r"\r?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
"""What goes back to the beginning of a frame, erasing line by line."""
PLAIN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # closed on the other side
        return b""
