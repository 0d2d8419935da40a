"""The chart: in step with the manifests, every value in use and described, versions that sort as ours do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from deploy import chart
from deploy.chart_values import leaves, values
from deploy.kustomizations import DEPLOY, Patch
from stromboli import __version__
from stromboli.cli.main import app
from tests.deploy.manifests import ROOT

FILES = chart.generated()
VALUES = dict(leaves(values()))
INSTALL = (ROOT / "docs" / "install.md").read_text()


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_chart_is_what_make_chart_writes(name: str) -> None:
    assert (chart.FOLDER / name).read_text() == FILES[name], "run `make chart`"


def test_there_is_nothing_else_in_it() -> None:
    there = {file.relative_to(chart.FOLDER).as_posix() for file in chart.FOLDER.rglob("*") if file.is_file()}
    assert there == {*FILES, *chart.WRITTEN_BY_HAND}


def test_every_component_and_every_part_is_in_it() -> None:
    assert {folder.name for folder in (DEPLOY / "components").iterdir()} == chart.COMPONENTS.keys()
    plans = {plan.parent.name for plan in DEPLOY.glob("*/kustomization.yaml")}
    assert plans == {*chart.PARTS, "crds", "monitoring"}


@pytest.mark.parametrize("name", VALUES)
def test_every_value_is_used(name: str) -> None:
    files = [*FILES.values(), *((chart.FOLDER / file).read_text() for file in chart.WRITTEN_BY_HAND)]
    assert any(re.search(rf"\.Values\.{re.escape(name)}\b", text) for text in files)


def test_every_value_that_is_used_is_described() -> None:
    texts = [text for name, text in FILES.items() if name.startswith("templates/")]
    used = {name for text in texts for name in re.findall(r"\.Values\.([\w.]+)", text)}
    assert used <= VALUES.keys()


def test_values_are_the_defaults_of_the_schema_that_refuses_all_others() -> None:
    defaults = yaml.safe_load(FILES["values.yaml"])
    schema = json.loads(FILES["values.schema.json"])
    for name, value in VALUES.items():
        assert _at(defaults, name) == value.default
    assert schema["properties"].keys() == defaults.keys() | {"global"}
    for part in (schema, *(schema["properties"][name] for name in defaults)):
        assert part["additionalProperties"] is False


def _at(content: Any, name: str) -> Any:
    for step in name.split("."):
        content = content[step]
    return content


@pytest.mark.parametrize("part", chart.PARTS)
def test_the_example_of_further_flags_is_a_flag_of_the_part(part: str) -> None:
    (flag,) = re.findall(r"`(--[\w-]+)=", VALUES[f"{part}.extraArgs"].meaning)
    result = CliRunner().invoke(app, [part, "--help"], env={"COLUMNS": "200"})
    assert re.search(rf"(^|\s){flag}\s", result.output)


def test_the_chart_has_the_version_of_the_package() -> None:
    description = yaml.safe_load(FILES["Chart.yaml"])
    assert description["appVersion"] == __version__
    assert description["version"] == chart.semantic_version(__version__)


def test_versions_of_charts_sort_as_those_of_packages() -> None:
    """By the rules of semver.org: numbers before words, a version without a stage last."""
    ours = ["0.1.0.dev0", "0.1.0.dev10", "0.1.0a1", "0.1.0b2", "0.1.0rc1", "0.1.0", "0.2.0.dev0"]
    theirs = [chart.semantic_version(version) for version in ours]
    assert theirs == [
        "0.1.0-0.dev.0",
        "0.1.0-0.dev.10",
        "0.1.0-alpha.1",
        "0.1.0-beta.2",
        "0.1.0-rc.1",
        "0.1.0",
        "0.2.0-0.dev.0",
    ]
    assert sorted(theirs, key=_precedence) == theirs


def _precedence(version: str) -> tuple[Any, ...]:
    numbers, _, stage = version.partition("-")
    words = [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in stage.split(".") if stage]
    return (*map(int, numbers.split(".")), not stage, *words)


@pytest.mark.parametrize("version", ["1.2", "1.2.3.4", "1.2.3a", "1.2.3a1.dev2", "1!1.2.3", "one"])
def test_a_version_that_no_chart_can_have_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match=re.escape(version)):
        chart.semantic_version(version)


def test_a_patch_that_no_template_can_say_is_refused() -> None:
    patch = Patch("Service", "a", "remove", ("spec",), None)
    service = {"kind": "Service", "metadata": {"name": "a"}, "spec": {}}
    with pytest.raises(ValueError, match="cannot be said in a chart"):
        chart._put_patch([service], patch, "true")


def test_the_documentation_names_values_that_exist() -> None:
    prefixes = tuple(f"{name}." for name in yaml.safe_load(FILES["values.yaml"]))
    named = {name for name in re.findall(r"`([a-zA-Z.]+)`", INSTALL) if name.startswith(prefixes)}
    assert len(named) > 30
    assert named <= VALUES.keys()
