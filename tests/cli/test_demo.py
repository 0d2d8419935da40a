"""The demo: its story, played twice as fast, and its screens."""

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


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without KUBECONFIG, which the demo's last screen mentions."""
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.mark.slow
def test_the_demo_shows_its_four_rules(tmp_path: Path) -> None:
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
    assert "sweep starts: 12 pods" in output
    assert "sweep loses 4 pods: borrowed GPUs go back, for train (action reclaim)" in output
    assert "train starts: 2 pods together" in output
    assert "nightly loses 1 pod: incident is more urgent (action preempt)" in output
    assert "sweep restarts 4 pods that it lost" in output
    assert "nightly restarts 1 pod that it lost" in output
    assert re.search(r"model waits: it needs 16 idle GPUs at once, and only \d+ are idle", output)
    assert output.index("sweep restarts 4 pods") < output.index("4. All or nothing: ")
    assert output.index("model waits: ") < output.index("model starts: 4 pods together")
    assert "Research used up to 24 GPUs: its own 16 and 8 borrowed." in output
    assert "3 of 3 gangs always ran with all their pods" in output
    assert "not yet" not in output
    assert max(map(len, output.splitlines())) <= 80
    assert len(output.partition("Try next")[2].splitlines()) == 4
    assert "\x1b" not in output


def test_each_chapter_has_a_manifest_file() -> None:
    for chapter in story.CHAPTERS:
        assert story.manifests(chapter.file), chapter.file
    files = {path.name for path in story.directory().glob("*.yaml")}
    assert files == {chapter.file for chapter in story.CHAPTERS}


def test_each_chapter_leaves_space_for_decisions() -> None:
    for chapter in story.CHAPTERS[1:]:
        assert len(view.wrap(chapter.text)) <= 3, chapter.file


def run_time(speed: float) -> str:
    [job] = story.manifests("03-train.yaml", speed)
    return str(job["spec"]["tasks"][0]["template"]["metadata"]["annotations"][RUN_TIME])


def test_speed_shortens_the_run_time_of_pods() -> None:
    assert run_time(1) == "16.000s"
    assert run_time(4) == "4.000s"


# -- frames and the chronicle


def node(name: str) -> dict:
    return {"metadata": {"name": name}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}}


def pod(name: str, phase: str = "Running", node: str = "n1", reason: str = "") -> dict:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "labels": {"volcano.sh/job-name": name.partition("-")[0]},
        },
        "spec": {"nodeName": node, "containers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "PodScheduled", "status": "False", "message": reason}],
        },
    }


def job(name: str, minimum: int, replicas: int, phase: str = "Running", namespace: str = "a") -> dict:
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"queue": "research", "minAvailable": minimum, "tasks": [{"replicas": replicas}]},
        "status": {"state": {"phase": phase}},
    }


QUEUES = [
    {"metadata": {"name": name}, "spec": {"weight": 1}} for name in ("research", "production", "default")
]
EVICTED = {
    "reason": "Evict",
    "involvedObject": {"kind": "Pod", "namespace": "a", "name": "gang-w-1"},
    "message": "Pod is evicted, because of reclaim for b/other-0a1b-2c, chosen by tier 1 (gang)",
}


def test_the_chronicle_reports_changes() -> None:
    chronicle = Chronicle()
    other = job("other", 1, 1, namespace="b")

    def messages(now: float, pods: list, phase: str = "Running", events: list = []) -> list[str]:  # noqa: B006
        jobs = [job("gang", 2, 2, phase), other]
        return chronicle.update(frame.build_frame([node("n1")], pods, jobs, QUEUES, events), now)

    why = "PodGroup gang waits: too few GPUs; wait (pod group is not ready)"
    waiting = [pod("gang-w-0", "Pending", "", why), pod("gang-w-1", "Pending", "", why)]
    assert messages(0, waiting) == []
    assert messages(5, waiting) == ["gang waits: too few GPUs"]
    assert messages(6, waiting) == []
    both = [pod("gang-w-0"), pod("gang-w-1")]
    assert messages(7, both) == ["gang starts: 2 pods together on 1 machine"]
    evicted = [pod("gang-w-0"), pod("gang-w-1", "Pending", "")]
    assert messages(8, evicted, events=[EVICTED]) == [
        "gang loses 1 pod: borrowed GPUs go back, for other (action reclaim)"
    ]
    assert messages(9, both, events=[EVICTED]) == ["gang restarts 1 pod that it lost"]
    done = [pod("gang-w-0", "Succeeded"), pod("gang-w-1", "Succeeded")]
    assert messages(10, done, "Completed", events=[EVICTED]) == ["gang is done"]
    record = chronicle.jobs["a/gang"]
    assert (record.started, record.finished, record.evicted, record.min_running) == (7, 10, {"other": 1}, 1)
    assert "0 of 1 gangs always ran with all their pods, never with only a part." in shown(
        view.summary(chronicle)
    )


def test_a_chapter_waits_until_the_pods_that_a_job_lost_run_again() -> None:
    chronicle = Chronicle()
    both, jobs = [pod("gang-w-0"), pod("gang-w-1")], [job("gang", 2, 2), job("other", 1, 1, namespace="b")]
    evicted = [pod("gang-w-0"), pod("gang-w-1", "Pending", "")]
    chapter = story.Chapter(0, "", "", after="a/gang", restarted="a/gang")
    due = [chronicle.is_due(chapter)]
    for pods, events in ((both, []), (evicted, [EVICTED]), (both, [EVICTED])):
        chronicle.update(frame.build_frame([node("n1")], pods, jobs, QUEUES, events), 0)
        due.append(chronicle.is_due(chapter))
    assert due == [False, False, False, True]
    assert Chronicle().is_due(story.CHAPTERS[0])


def test_the_last_chapter_waits_until_too_few_gpus_are_idle() -> None:
    assert story.CHAPTERS[-1].restarted == "research/sweep"


def test_the_end_fits_60_columns() -> None:
    _, chronicle = crowded_frame()
    for record in chronicle.jobs.values():
        record.started, record.finished = 10, 45
    chronicle.jobs["a/nightly"].evicted["incident"] = 1
    table = shown(view.summary(chronicle))[2:8]
    assert [line.split()[0] for line in table] == ["Job", "sweep", "nightly", "train", "incident", "model"]
    assert max(map(len, table)) <= 60


def test_the_last_screen_names_a_kubeconfig_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/stromboli")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert len(shown(view.next_steps())) == 4
    monkeypatch.setenv("KUBECONFIG", "/home/ann/.kube/config")
    assert "KUBECONFIG is set: the last two use that cluster" in " ".join(shown(view.next_steps()))


def test_a_gang_that_waits_needs_more_gpus_than_are_idle() -> None:
    pods = [pod("gang-w-0", "Pending", "", "Insufficient nvidia.com/gpu"), pod("gang-w-1", "Pending", "")]
    holder = pod("other-w-0")
    state = frame.build_frame([node("n1")], [*pods, holder], [job("gang", 2, 2)], QUEUES, [])
    chronicle = Chronicle()
    chronicle.update(state, 0)
    assert chronicle.update(state, 5) == ["gang waits: it needs 4 idle GPUs at once, and only 2 are idle"]


def shown(renderable: RenderableType, encoding: str = "utf-8") -> list[str]:
    """Print to a terminal of 80 columns without colours and return the lines."""
    out = Console(width=80, file=io.TextIOWrapper(io.BytesIO(), encoding), color_system=None)
    out.print(renderable)
    out.file.flush()
    assert isinstance(out.file, io.TextIOWrapper)
    return out.file.buffer.getvalue().decode(encoding).splitlines()  # type: ignore[attr-defined]


def test_a_frame_shows_machines_teams_and_jobs() -> None:
    chronicle = Chronicle()
    pods = [pod("gang-w-0"), pod("gang-w-1", "Pending", ""), pod("gang-w-2", "Pending", "n2")]
    pods.append(pod("gang-w-10", "Succeeded"))
    state = frame.build_frame([node("n1"), node("n2")], pods, [job("gang", 2, 4)], QUEUES, [])
    chronicle.update(state, 1.0)
    lines = shown(view.render_frame(state, chronicle, 3.0, ["1. A rule", "   1 s  news"]))
    assert " ".join(lines[0].split()) == "Two teams share 2 machines with 4 GPUs each 3 s of about 50 s"
    assert lines[1] == "n1 RR..  n2 RR.."
    assert "R used by research" in lines[2]
    [team] = [line for line in lines if line.startswith("research")]
    assert " ".join(team.split()) == "research ████┃░░░░ 4 of its own 4"
    [row] = [line for line in lines if line.startswith("gang")]
    assert row.split(maxsplit=3) == ["gang", "research", "■□▫✓", "0 of 4 pods run, a gang: all or none"]
    assert lines[-2:] == ["1. A rule", "   1 s  news"]


def test_a_team_that_uses_more_than_its_half_borrows() -> None:
    pods = [pod(f"sweep-w-{index}", node=f"n{index // 2 + 1}") for index in range(3)]
    state = frame.build_frame([node("n1"), node("n2")], pods, [job("sweep", 1, 3)], QUEUES, [])
    chronicle = Chronicle()
    chronicle.update(state, 1.0)
    [team] = [
        line for line in shown(view.render_frame(state, chronicle, 1.0, [])) if line.startswith("research")
    ]
    assert " ".join(team.split()) == "research ████┃██░░ 4 of its own 4 + 2 borrowed"
    assert "Research used up to 6 GPUs: its own 4 and 2 borrowed." in shown(view.summary(chronicle))


def test_an_evicted_pod_is_marked_until_it_restarts() -> None:
    chronicle, rows = Chronicle(), []
    waits, starts = pod("gang-w-1", "Pending", ""), pod("gang-w-1", "Pending", "n1")
    jobs = [job("gang", 1, 2), job("other", 1, 1, namespace="b")]
    for second in (pod("gang-w-1"), waits, starts, pod("gang-w-1")):
        events = [EVICTED] if rows else []
        state = frame.build_frame([node("n1")], [pod("gang-w-0"), second], jobs, QUEUES, events)
        chronicle.update(state, 1.0)
        lines = shown(view.render_frame(state, chronicle, 1.0, []))
        rows += [line[24:] for line in lines if line.startswith("gang")]
    assert [row.split()[0] for row in rows] == ["■■", "■✗", "■▫", "■■"]
    assert rows[1].endswith("1 of 2 pods run")


def crowded_frame() -> tuple[Frame, Chronicle]:
    """As many nodes and jobs as the story has, with the longest names."""
    names = ["sweep", "nightly", "train", "incident", "model"]
    pods = [pod(f"{name}-w-{index}", "Pending", "") for name in names for index in range(12)]
    for index, placed in enumerate(pods[:16]):  # two on each node, which is full with them
        placed["spec"]["nodeName"] = f"n{index % 8 + 1}"
    nodes = [node(f"n{number}") for number in range(1, 9)]
    state = frame.build_frame(nodes, pods, [job(name, 12, 12) for name in names], QUEUES, [])
    chronicle = Chronicle()
    chronicle.update(state, 0.0)
    return state, chronicle


@pytest.mark.parametrize("marks", [view.UNICODE, view.ASCII])
def test_a_frame_fits_a_terminal_of_80_columns_and_24_lines_with_nothing_cut(
    monkeypatch: pytest.MonkeyPatch, marks: view.Marks
) -> None:
    state, chronicle = crowded_frame()
    text = max((chapter.text for chapter in story.CHAPTERS[1:]), key=len)
    messages = [view.timestamped(number, f"message {number} " + "word " * 20) for number in range(9)]
    lines = shown(view.render_frame(state, chronicle, 59.0, [text, *messages], marks), "utf-8")
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert [line for line in lines if line.lstrip().startswith("8 s  message 8")]
    assert "".join(lines).count("word") == 40  # the two latest messages, each in full
    assert set(view.wrap(text)) <= set(lines)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/stromboli")
    end = shown(Group(view.summary(chronicle), view.next_steps()))
    assert len(end) <= 23
    assert end[-4].startswith("Try next")
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
def test_on_a_real_terminal_each_frame_fits_80_columns_and_24_lines(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.chdir(tmp_path)
        os.execve(sys.executable, [sys.executable, "-m", "stromboli", "demo", "--speed", "2"], environment)
    output = b"".join(iter(lambda: read(terminal), b"")).decode()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, output
    frames = [PLAIN.sub("", part).strip("\r\n") for part in REDRAWN.split(output)]
    sizes = [(max(map(len, lines)), len(lines)) for text in frames if (lines := text.split("\r\n"))]
    assert len(frames) > 10
    assert max(width for width, _ in sizes) <= 80
    assert max(height for _, height in sizes) <= 23
    assert "Two teams share 8 machines with 4 GPUs each" in frames[1]
    assert "The end: what became of the jobs" in frames[-1]


REDRAWN = re.compile(r"\r?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*")
"""The sequence that returns to the start of a frame and erases it line by line."""
PLAIN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # closed on the other side
        return b""
