"""What the documentation shows of a cluster of `stromboli up` is true, where there is a kubectl."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, Command, blocks, commands
from tests.embedded.nodes.machine.fake_nvidia_smi import install, row
from tests.embedded.up_process import Up

SAME = "on: the same cluster"


def _cases() -> Iterator[tuple[Path, Block]]:
    """What runs on one cluster, by page, as a block: those that go on with `SAME` are joined to the one before."""
    for page in PAGES:
        joined: list[Block] = []
        for block in blocks(page.read_text()):
            if block.mark.startswith("on: up"):
                joined.append(block)
            elif block.mark == SAME:
                joined[-1] = joined[-1]._replace(body=joined[-1].body + block.body)
        yield from ((page, block) for block in joined)


CASES = list(_cases())
CARDS = ("GPU-6cd25e94-1c2c-5bf5-0f5c-0b8a5a8f3a51", "GPU-e2b1c0d4-77aa-5c3e-9d20-41f6b8a9c7d3")
PATIENCE = 10.0
"""Seconds in which what is only read may come to be as it is shown."""
_READ = re.compile(
    r"kubectl( --kubeconfig \S+)? (get|logs) |stromboli (job|queue) (list|get|tree|describe|logs)\b"
)
_MARK = re.compile(r"on: up(?P<options>.*?)(?: with (?P<gpus>\d) GPUs?)?")
_UID = re.compile(r"(?<!GPU-)\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b(\d+d)?(\d+h)?(\d+m)?\d+s\b")


@pytest.mark.programs("kubectl")
@pytest.mark.parametrize(
    ("page", "block"), CASES, ids=lambda value: value.name if isinstance(value, Path) else None
)
def test_what_a_page_shows_of_a_cluster_is_true(
    page: Path, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    match = _MARK.fullmatch(block.mark)
    assert match is not None, block.mark
    if match["gpus"]:
        rows = (row(number, card=CARDS[number]) for number in range(int(match["gpus"])))
        monkeypatch.setenv("PATH", f"{install(tmp_path, *rows)}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with Up(tmp_path / "data", *shlex.split(match["options"])) as cluster:
        for command in commands(block.body):
            deadline = time.monotonic() + PATIENCE
            while (problem := _problem(command, cluster)) and _READ.match(command.line):
                assert time.monotonic() < deadline, problem
                time.sleep(0.2)
            assert not problem, problem


def _problem(command: Command, cluster: Up) -> str:
    """Run a command; how it differs from what is shown."""
    done = subprocess.run(
        command.line,
        shell=True,
        check=False,
        cwd=ROOT,
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    shown = "".join(".*" if line == "..." else re.escape(_steady(line)) + "\n" for line in command.output)
    output = "".join(_steady(line) + "\n" for line in done.stdout.splitlines())
    if done.returncode == 0 and re.fullmatch(shown, output, re.S):
        return ""
    return f"{command.line}: {done.stdout}{done.stderr}"


def _steady(line: str) -> str:
    """Times and uids do not count, nor how wide they make a column, nor what newer versions of kubectl add."""
    line = re.sub(r'(" deleted) from \S+ namespace$', r"\1", line)
    return " ".join(_UID.sub("<uid>", _TIME.sub("<time>", line)).split())
