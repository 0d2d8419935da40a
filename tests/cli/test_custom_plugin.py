"""The example of an own action, plugin and extension point, through the command."""

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

Run = Callable[..., Result]
EXAMPLES = Path(__file__).parents[2] / "examples"
OWN = EXAMPLES / "custom_plugin"
PLAN = ("plan", "-f", EXAMPLES / "cluster.yaml", "--plugins-dir", OWN, "--policy", OWN / "policy.yaml")


def test_the_own_action_prints_what_the_own_plugin_says(run: Run) -> None:
    result = run(*PLAN)
    assert result.exit_code == 0
    assert result.stdout.startswith("default/train\ndefault/simulate\n")
    assert "2 bound" in result.stdout


def test_what_it_prints_does_not_spoil_json(run: Run) -> None:
    result = run(*PLAN, "-o", "json")
    assert "print-jobs" in json.loads(result.stdout)["timing"]["actions"]
    assert "default/train\n" in result.stderr


def test_it_is_listed_and_checked_like_ours(run: Run) -> None:
    assert "print-job.namespace" in run("plugins", "--plugins-dir", OWN).stdout
    assert "print-jobs" in run("actions", "--plugins-dir", OWN).stdout
    assert run("policy", "check", OWN / "policy.yaml", "--plugins-dir", OWN).exit_code == 0
    assert run("policy", "check", OWN / "policy.yaml", "--no-lenient-policy").exit_code == 1


def test_a_policy_whose_plugin_cannot_be_built_is_refused_by_all_commands(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from stromboli.engine.plugin import Plugin\n"
        "class Broken(Plugin):\n"
        "    name = 'broken'\n"
        "    def __init__(self, arguments, switches):\n"
        "        raise RuntimeError('no licence')\n"
    )
    policy = tmp_path / "policy.conf"
    policy.write_text('actions: "allocate"\ntiers: [{plugins: [{name: broken}]}]\n')
    error = f"error: {policy}: broken failed in build: RuntimeError: no licence"
    for arguments in (
        ("policy", "check", policy),
        ("up", "--policy", policy),
        ("plan", "-f", EXAMPLES / "cluster.yaml", "--policy", policy),
    ):
        result = run(*arguments, "--plugins-dir", tmp_path)
        assert (error in result.stderr, result.exit_code != 0) == (True, True)


def test_where_a_plugin_failed_over_a_job_is_shown_when_debugging(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from stromboli.engine.plugin import Plugin\n"
        "class Broken(Plugin):\n"
        "    name = 'broken'\n"
        "    def score_nodes(self, task, nodes):\n"
        "        return nodes.nothing\n"
    )
    (tmp_path / "policy.conf").write_text(
        'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: broken}]}]\n'
    )
    arguments = ("plan", "-f", EXAMPLES / "cluster.yaml", "--plugins-dir", tmp_path)
    arguments += ("--policy", tmp_path / "policy.conf")
    result = run(*arguments)
    assert result.stderr.count("error: plugin 'broken' failed in score_nodes") == 1
    assert result.exit_code == 1
    result = run(*arguments, "-o", "jsonl")
    assert json.loads(result.stdout)["failures"] != []
    assert result.exit_code == 1
    assert f'"{tmp_path / "broken.py"}", line 5, in score_nodes' in run("--debug", *arguments).stderr
