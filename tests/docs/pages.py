"""A page of the documentation as something that can be run, from top to bottom."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from typer.testing import CliRunner

from stromboli.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        ROOT / "changelog.d" / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+) -->\n\n?)?^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^ *```$",
    re.M | re.S,
)
_COMPLAINT = re.compile(r"^error:|, [1-9]\d* problems?$| (?:does not start|start time unknown) \(")
_VOLATILE = re.compile(r"\d+(\.\d+)? (s|ms)\b")


def script(name: str) -> ModuleType:
    """A script of docs/, which finds those beside it."""
    folder = str(ROOT / "docs")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


class Block(NamedTuple):
    """A fenced block: its language, the text, and a mark in a comment right before it.

    Marks: `not run` (an outline, or something that takes a cluster), `file: NAME` (the reader saves it as that), `on:
    up ...` (with kubectl, on a cluster that was started like that, on a machine `with 2 GPUs` if it says so), `on: the
    same cluster` (which goes on there; see test_embedded.py).
    """

    language: str
    body: str
    mark: str


class Command(NamedTuple):
    """A command of a console block and the output shown below it."""

    line: str
    output: list[str]


SERVERS = (["up"], ["scheduler"], ["controllers"], ["admission"])
"""Commands that run until they are stopped."""


def blocks(text: str) -> list[Block]:
    return [
        Block(match["language"], match["body"], (match["mark"] or "").strip())
        for match in _BLOCK.finditer(text)
    ]


def commands(body: str) -> Iterator[Command]:
    """`$ command`, its output up to the next one."""
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        line, *output = part.replace("\\\n", "").splitlines()
        yield Command(line, output)


def run_page(page: Path, folder: Path) -> int:
    """Do what a page says in a folder that has the examples; how many things were done."""
    names: dict[str, object] = {"__name__": "page"}
    done = 0
    for block in blocks(page.read_text()):
        if block.mark == "not run" or block.mark.startswith("on: "):
            continue
        if block.mark.startswith("file: "):
            path = folder / block.mark.removeprefix("file: ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body)
        elif block.language == "python":
            exec(compile(block.body, page.name, "exec", dont_inherit=True), names)
            done += 1
        elif block.language == "console":
            for command in commands(block.body):
                run_command(command)
                done += 1
    return done


def run_command(command: Command) -> None:
    """Run a command of ours and compare; of `make`, only see that the target is there, and activate nothing."""
    program, *arguments = shlex.split(command.line, comments=True)
    if program == ".":
        return
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(arguments) <= set(targets), command.line
        return
    runs_here = program == "stromboli" and arguments[:1] not in SERVERS
    assert runs_here, f"{command.line}: what is not run needs the mark `not run`"
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    complains = any(_COMPLAINT.search(line) for line in command.output)
    assert (result.exit_code != 0) == complains, result.output
    if command.output:
        assert_shows(result.output, command.output)


def assert_shows(output: str, shown: list[str]) -> None:
    """The lines shown are the output; `...` stands for any lines, times do not count."""
    pattern = "".join(".*" if line.strip() == "..." else re.escape(_steady(line)) + "\n" for line in shown)
    steady = "".join(_steady(line) + "\n" for line in output.splitlines())
    assert re.fullmatch(pattern, steady, re.S), f"shown:\n{chr(10).join(shown)}\n\nit is:\n{output}"


def _steady(line: str) -> str:
    return _VOLATILE.sub("<time>", line.rstrip())


# -- links


def links(text: str) -> list[str]:
    """Where a page points to, outside code."""
    prose = re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "", text, flags=re.M | re.S)
    return [
        markdown or html for markdown, html in re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", prose)
    ]


def anchors(text: str) -> set[str]:
    """The headings of a page as links name them."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    heads = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
