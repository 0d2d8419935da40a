"""Broken manifests through the command: a clear error each, and the rest is planned if we keep going."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from stromboli.model.dimensions import MOST

Run = Callable[..., Result]
BROKEN = Path(__file__).parents[1] / "api" / "data" / "broken"


@pytest.mark.parametrize("file", sorted(BROKEN.iterdir()), ids=lambda file: file.name)
def test_a_broken_manifest_is_refused_and_left_out_on_demand(
    run: Run, file: Path, cluster: Path, policy: Path
) -> None:
    refused = run("plan", "-f", cluster, "-f", file)
    assert refused.exit_code == 2
    assert file.name in refused.stderr
    assert "--keep-going" in refused.stderr
    assert "Traceback" not in refused.output
    result = run("plan", "-f", cluster, "-f", file, "--policy", policy, "--keep-going", "-o", "json")
    assert result.exit_code == 0
    plan = json.loads(result.stdout)
    assert plan["bound_per_job"]["default/train"] == 3
    assert any(file.name in problem["file"] for problem in plan["problems"])


def test_all_of_them_at_once(run: Run, tmp_path: Path, cluster: Path, policy: Path) -> None:
    shutil.copytree(BROKEN, tmp_path / "broken")
    result = run("plan", "-f", cluster, "-f", tmp_path / "broken", "--policy", policy, "--keep-going")
    assert result.exit_code == 0
    assert "3 bound" in result.stdout
    assert result.stderr.count("warning: left out: ") >= len(list(BROKEN.iterdir()))


def test_what_only_the_model_refuses_is_a_problem_like_any_other(
    run: Run, tmp_path: Path, policy: Path
) -> None:
    sizes = {f"vendor.example/r{i}": "1" for i in range(MOST)}
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", **sizes}}}
    (tmp_path / "n.json").write_text(json.dumps(node))
    refused = run("plan", "-f", tmp_path / "n.json")
    assert refused.exit_code == 2
    assert "Node n: resources: resource 'vendor.example/" in refused.stderr
    kept = run("plan", "-f", tmp_path / "n.json", "--keep-going", "-o", "json")
    assert json.loads(kept.stdout)["problems"][0]["object"] == "Node n"
