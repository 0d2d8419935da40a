"""How quickly commands start: what they import, and the processor time that takes."""

import json
import os
import subprocess
import sys

import pytest

from stromboli.cli.main import Commands
from tests.processor_time import TIMES

REPORT = """
import json, sys, time
sys.argv = ["stromboli", *json.loads(sys.argv[1])]
from stromboli.cli.main import app
try:
    app()
finally:
    print(json.dumps([time.process_time(), sorted(sys.modules)]), file=sys.stderr)
"""
NETWORK = {"aiohttp", "asyncio", "cryptography", "http.client", "kubernetes_asyncio", "ssl", "stromboli.kube"}
HEAVY = {
    *NETWORK,
    "msgspec",
    "numpy",
    "rich",
    "yaml",
    "stromboli.api.types",
    "stromboli.engine",
    "stromboli.policy",
}
ON_DEMAND = {"re2"}
"""Only patterns that users write need it."""
LIBRARIES = """
import json, sys, time
import msgspec, numpy, typer, yaml
print(json.dumps([time.process_time(), []]), file=sys.stderr)
"""
HELP_FACTOR, PLAN_FACTOR = 4, 12
"""How many times the processor time that importing libraries takes; what takes more is an import too many."""


def started(program: str, *arguments: str) -> tuple[float, set[str]]:
    """The least processor time of some runs of a program, and the modules that it imported."""
    reports = []
    for _ in range(TIMES):
        done = subprocess.run(
            [sys.executable, "-c", program, json.dumps(arguments)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "COLUMNS": "80"},
        )
        reports.append(json.loads(done.stderr))
    return min(seconds for seconds, _ in reports), set(reports[0][1])


@pytest.fixture(scope="module")
def libraries() -> float:
    """The processor time of importing them."""
    return started(LIBRARIES)[0]


def test_help_imports_nothing_that_only_commands_need(libraries: float) -> None:
    seconds, modules = started(REPORT, "--help")
    assert modules & (HEAVY | ON_DEMAND) == set()
    assert seconds < HELP_FACTOR * libraries


def test_a_plan_of_files_imports_nothing_of_a_network(libraries: float) -> None:
    seconds, modules = started(REPORT, "plan", "-f", "examples/two-teams")
    assert modules & (NETWORK | ON_DEMAND) == set()
    assert seconds < PLAN_FACTOR * libraries


@pytest.mark.parametrize("name", Commands.table())
def test_every_command_of_the_table_exists_and_has_help(run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0, result.output
    assert f" {name} [" in result.stdout.partition("\n")[0]


def test_the_list_of_commands_is_not_cut_short_at_80_columns(run) -> None:
    text = run("--help", env={"COLUMNS": "80"}).stdout
    assert [name for name, entry in Commands.table().items() if entry.help not in text] == []
    assert max(map(len, text.splitlines())) <= 80
