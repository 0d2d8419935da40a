"""What the documents show is true: their Python runs, their commands work, their JSON has the keys."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))


def blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL)


COMMANDS = [
    line.removeprefix("$ ")
    for file in DOCS
    for block in blocks(file, "console")
    for line in block.splitlines()
    if line.startswith("$ stromboli ")
]


@pytest.mark.parametrize("name", ["testing-plugins.md", "custom-plugins.md"])
def test_the_python_of_a_document_runs_from_top_to_bottom(name: str) -> None:
    names: dict[str, object] = {"__name__": "document"}
    for block in blocks(ROOT / "docs" / name, "python"):
        exec(compile(block, name, "exec"), names)
    assert len(names) > 3


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_works_as_shown(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(command)
    assert program == "stromboli"
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_the_json_of_a_plan_is_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = blocks(ROOT / "docs" / "plan.md", "json")
    documented = json.loads(shown)
    words = ["plan", "-f", "examples/cluster.yaml", "-o", "json", "--policy", "tests/docs/gang.yaml"]
    plan = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert plan["timing"].keys() == documented["timing"].keys()
    assert plan["timing"]["actions"].keys() == documented["timing"]["actions"].keys()
    del plan["timing"], documented["timing"]
    assert plan == documented
