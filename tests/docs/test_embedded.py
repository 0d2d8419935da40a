"""What the documentation shows of a cluster of `stromboli up` is true, where there is a kubectl."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks, commands
from tests.embedded.up_process import Up

CASES = [
    (page, block) for page in PAGES for block in blocks(page.read_text()) if block.mark.startswith("on: up")
]
_TIME = re.compile(r"\b(\d+d)?(\d+h)?(\d+m)?\d+s\b")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here")
@pytest.mark.parametrize(
    ("page", "block"), CASES, ids=lambda value: value.name if isinstance(value, Path) else None
)
def test_what_a_page_shows_of_a_cluster_is_true(page: Path, block: Block, tmp_path: Path) -> None:
    with Up(tmp_path / "data", *shlex.split(block.mark.removeprefix("on: up"))) as cluster:
        for command in commands(block.body):
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
            assert done.returncode == 0, f"{command.line}: {done.stdout}{done.stderr}"
            shown = "".join(
                ".*" if line == "..." else re.escape(_steady(line)) + "\n" for line in command.output
            )
            output = "".join(_steady(line) + "\n" for line in done.stdout.splitlines())
            assert re.fullmatch(shown, output, re.S), f"{command.line}: {done.stdout}"


def _steady(line: str) -> str:
    """Times do not count, nor how wide they make a column."""
    return " ".join(_TIME.sub("<time>", line).split())
