"""What a process imports before it needs it: each of these costs a scheduler's start a tenth of a second or so."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEFORE_THE_LISTS = "import stromboli.cli.main, stromboli.cli.scheduler, stromboli.scheduler.process"
BEFORE_THE_FIRST_BIND = (
    "from stromboli.scheduler import introspection, process, replica;"
    "from stromboli.cli.scheduler import _load_policy;"
    "from stromboli.scheduler.options import parse;"
    "_load_policy(parse([]))"
)
SERVERS = {
    "aiohttp",
    "stromboli.controllers",
    "stromboli.embedded",
    "stromboli.admission",
    "stromboli.simulator",
}
ENGINE = {"numpy", "prometheus_client", "stromboli.engine", "stromboli.model", "stromboli.plugins"}


@pytest.mark.parametrize(
    ("imports", "unneeded"),
    [
        ("import stromboli.cli.main", SERVERS | ENGINE | {"asyncio", "msgspec", "yaml"}),
        (BEFORE_THE_LISTS, SERVERS | ENGINE),
        (BEFORE_THE_FIRST_BIND, SERVERS),
        ("import stromboli.controllers.process", {"numpy", "stromboli.engine", "stromboli.model"}),
    ],
)
def test_what_is_not_needed_yet_is_not_imported(imports: str, unneeded: set[str]) -> None:
    program = f"{imports}\nimport sys\nprint(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert unneeded & set(result.stdout.split()) == set()
