"""The smaller commands: policies and lists."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from stromboli import __version__
from stromboli.cli.command_group import ELSEWHERE
from stromboli.cli.main import Commands
from stromboli.policy.presets import PRESETS

Run = Callable[..., Result]


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout == f"stromboli {__version__}\n"
    for arguments in (["-h"], ["--help"], ["plan", "-h"], ["policy", "check", "-h"]):
        result = run(*arguments)
        assert result.exit_code == 0
        assert "Usage: " in result.stdout


@pytest.mark.parametrize(
    ("word", "ours"), [("sbatch", "submit"), ("squeue", "job list"), ("logs", "job logs"), ("get", "job get")]
)
def test_a_word_of_slurm_or_kubectl_leads_to_the_command(run: Run, word: str, ours: str) -> None:
    result = run(word, "something")
    assert result.exit_code == 2
    assert f"No such command '{word}'; here it is `stromboli {ours}`." in result.stderr


def test_words_from_elsewhere_are_no_commands_and_lead_to_commands(run: Run) -> None:
    commands = set(Commands.table())
    assert not commands & set(ELSEWHERE)
    for ours in set(ELSEWHERE.values()):
        assert run(*ours.split(), "--help").exit_code == 0, ours


def test_it_is_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stromboli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"stromboli {__version__}\n"


def test_policies_are_shown(run: Run) -> None:
    assert run("policy", "show").stdout.split() == list(PRESETS)
    for name, text in PRESETS.items():
        assert run("policy", "show", name).stdout == text
    assert 'did you mean "full"' in run("policy", "show", "ful").stderr


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_passes_its_own_check(run: Run, tmp_path: Path, name: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(PRESETS[name])
    result = run("policy", "check", file)
    assert result.exit_code == 0
    assert f"{file}: right, enqueue, allocate" in result.stdout


def test_a_wrong_policy_is_told_with_file_and_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text('actions: "allocate, enqueue"\ntiers:\n- plugins:\n  - name: gnag\n    enableX: true\n')
    result = run("policy", "check", file, "--no-lenient-policy")
    assert result.exit_code == 1
    assert f'error: {file}:4: unknown plugin "gnag"; did you mean "gang"?' in result.stderr
    assert f"warning: {file}:1: actions: allocate runs before enqueue" in result.stderr
    document = json.loads(run("policy", "check", file, "--no-lenient-policy", "-o", "json").stdout)
    assert document["ok"] is False
    assert len(document["errors"]) >= 1
    assert len(document["warnings"]) == 1
    assert run("policy", "check", tmp_path / "none.yaml").exit_code == 1


def test_a_policy_may_come_from_standard_input(run: Run) -> None:
    result = run("policy", "check", "-", input=PRESETS["basic"])
    assert (result.exit_code, result.stdout) == (0, "-: right, enqueue, allocate, backfill\n")
    result = run("policy", "check", "-", input='actions: "alocate"\n')
    assert result.exit_code == 1
    assert 'error: -:1: failed to find Action alocate; did you mean "allocate"?' in result.stderr


def test_defaults_that_are_mappings_are_shown_as_a_policy_writes_them(run: Run) -> None:
    assert "thresholds  a mapping, default cpu 80, mem 80\n" in run("plugins", "usage").stdout
    shape = "a list of mappings, default utilization 0, score 10; utilization 100, score 0\n"
    assert shape in run("plugins", "predicates").stdout
    usage = json.loads(run("plugins", "usage", "-o", "json").stdout)
    assert {"cpu": 80, "mem": 80} in [argument["default"] for argument in usage["arguments"]]


def test_one_plugin_or_action_is_shown_in_detail(run: Run) -> None:
    text = run("plugins", "capacity").stdout
    assert text.startswith("capacity\nQueues with explicit shares")
    assert "    ancestorReclaimLevel  an integer, default 0\n" in text
    assert "    allocatable\n        Whether a queue may still take this task.\n" in text
    assert "    victim_queue_order\n" in text, "what only a variant answers"
    entry = json.loads(run("plugins", "gang", "-o", "json").stdout)
    assert entry["name"] == "gang"
    assert "job_ready" in entry["points"]
    assert "job_enqueueable" not in entry["points"]
    assert "predicateErrorCacheEnable" in run("actions", "allocate").stdout
    wrong = run("plugins", "gnag")
    assert wrong.exit_code == 2
    assert 'there is no plugin "gnag"; did you mean "gang"?' in wrong.stderr
    assert 'there is no action "alocate"; did you mean "allocate"?' in run("actions", "alocate").stderr


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("stromboli pl", ["plan", "plugins", "plugin"]),
        ("stromboli plan --preset f", ["fair-share", "full"]),
        ("stromboli policy show ba", ["basic"]),
        ("stromboli plugins ga", ["gang"]),
        ("stromboli actions all", ["allocate"]),
    ],
)
def test_shells_can_complete(run: Run, arguments: str, names: list[str]) -> None:
    env = {
        "_STROMBOLI_COMPLETE": "complete_bash",
        "COMP_WORDS": arguments,
        "COMP_CWORD": str(arguments.count(" ")),
    }
    assert run(env=env, prog_name="stromboli").stdout.split() == names


def test_plugins_and_actions_are_listed_with_their_arguments(run: Run) -> None:
    assert "gang  Holds a job back" in run("plugins").stdout
    listed = {entry["name"]: entry for entry in json.loads(run("plugins", "-o", "json").stdout)}
    assert listed["gang"]["arguments"] == []
    actions = {entry["name"]: entry for entry in json.loads(run("actions", "-o", "json").stdout)}
    assert actions["allocate"]["arguments"][0]["key"] == "predicateErrorCacheEnable"
    assert all(entry["doc"] for entry in [*listed.values(), *actions.values()])
    assert "enqueue  Admit pending jobs" in run("actions").stdout


@pytest.mark.parametrize("arguments", [("policy", "show", "basic"), ("plugins",), ("--help",)], ids=" ".join)
def test_a_full_disk_under_the_output_is_told_in_a_line(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "stromboli", *arguments]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: standard output cannot be written: No space left on device")
    assert done.stderr.count("\n") == 1
