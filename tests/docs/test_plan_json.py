"""The JSON that docs/plan.md shows is the JSON of a plan."""

import json

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.docs.pages import ROOT, blocks


def test_the_json_of_a_plan_is_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "plan.md").read_text()
    (shown,) = [block.body for block in blocks(page) if block.language == "json"]
    documented = json.loads(shown)
    arguments = ["plan", "-f", "examples/cluster.yaml", "-o", "json", "--policy", "tests/docs/gang.yaml"]
    plan = json.loads(CliRunner().invoke(app, arguments, catch_exceptions=False).stdout)
    assert plan["timing"].keys() == documented["timing"].keys()
    assert plan["timing"]["actions"].keys() == documented["timing"]["actions"].keys()
    del plan["timing"], documented["timing"]
    assert plan == documented
