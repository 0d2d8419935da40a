"""Which tests a tier has."""

import ast
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.isolation import BASIC_PROGRAMS, remove_proxies
from tests.tiers import DURATIONS, SHARED_SERVERS

TESTS = Path(__file__).parent
SMOKE_TESTS = range(20, 31)
CONFTEST = """
from pathlib import Path
from tests import tiers
from tests.conftest import *
from tests.conftest import pytest_addoption

tiers.DURATIONS = Path(__file__).with_name("durations.json")
"""
TWO_TESTS = "def test_a(): ...\ndef test_b(): ...\n"


def test_the_examples_of_each_property_are_scaled() -> None:
    """Otherwise the fast tier has them in full, and the other tier has the same again."""
    fixed = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"max_examples ?= ?\d", line)
    ]
    assert fixed == []


def decorated(path: Path) -> Iterator[tuple[str, str]]:
    """The name of each function of a module, with the text of each of its decorators."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ((node.name, ast.unparse(decorator)) for decorator in node.decorator_list)


def test_each_file_with_a_duration_exists() -> None:
    """Otherwise the tests of a file that moved are started last."""
    recorded = json.loads(DURATIONS.read_text())
    assert recorded.keys() == {"fast", "rest", "real", "embedded", "programs"}
    files = {name for durations in recorded.values() for name in durations}
    assert [name for name in sorted(files) if not (TESTS / name).exists()] == []


def test_only_one_directory_shares_servers_between_files() -> None:
    sharing = {
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("conftest.py")
        if re.search(r"^@pytest.*scope=.(session|package)", path.read_text(), re.MULTILINE)
    }
    assert sharing == {f"{SHARED_SERVERS}conftest.py"}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A directory of tests with our hooks: two files of two tests, and three of two tests on shared servers."""
    files = ("test_long.py", "test_short.py", *(f"kubernetes/test_{number}.py" for number in range(3)))
    for name in files:
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TWO_TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\n")
    return tmp_path


def pytest_in(suite: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), *sys.path]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def order_by_worker(output: str) -> list[list[str]]:
    """The files whose tests each worker ran, with a file again when it comes back to it."""
    files: dict[str, list[str]] = {}
    for worker, file in re.findall(r"\[(gw\d)\].* PASSED tests/(\S+)::", output):
        ran = files.setdefault(worker, [])
        if ran[-1:] != [file]:
            ran.append(file)
    return sorted(files.values())


@pytest.mark.slow
def test_a_file_runs_in_one_worker_and_the_longest_first(suite: Path) -> None:
    seconds = {"test_long.py": 20, "test_short.py": 1} | {f"kubernetes/test_{n}.py": 2 + n for n in range(3)}
    (suite / "durations.json").write_text(json.dumps({"fast": seconds}))
    done = pytest_in(suite, "-n", "2", "-v")
    first, second = order_by_worker(done.stdout)
    assert sorted([*first, *second]) == sorted(seconds), done.stdout + done.stderr
    assert first[:2] == ["kubernetes/test_2.py", "kubernetes/test_0.py"]
    assert second[:2] == ["test_long.py", "kubernetes/test_1.py"]


@pytest.mark.slow
def test_files_that_share_servers_run_in_one_worker_of_a_tier(suite: Path) -> None:
    (suite / "durations.json").write_text('{"fast": {"test_long.py": 20, "kubernetes/test_2.py": 4}}')
    done = pytest_in(suite, "-n", "2", "-v", "--tier", "fast")
    shared = [f"kubernetes/test_{number}.py" for number in range(3)]
    assert order_by_worker(done.stdout) == [shared, ["test_long.py", "test_short.py"]], (
        done.stdout + done.stderr
    )


@pytest.mark.slow
def test_durations_of_a_tier_do_not_replace_those_of_another(suite: Path) -> None:
    known = {"fast": {"test_long.py": 9.0}, "rest": {"test_long.py": 60.0, "test_short.py": 7.0}}
    (suite / "durations.json").write_text(json.dumps(known))
    (suite / "tests" / "test_long.py").write_text("import time\n\ndef test_a():\n    time.sleep(0.6)\n")
    assert pytest_in(suite, "--tier", "fast", "--record-durations").returncode == 0
    recorded = json.loads((suite / "durations.json").read_text())
    assert recorded["rest"] == known["rest"]
    assert recorded["fast"].keys() == {"test_long.py"}
    assert 0.6 <= recorded["fast"]["test_long.py"] < 9


def test_a_tier_names_basic_programs_that_are_missing(suite: Path, tmp_path: Path) -> None:
    done = pytest_in(suite, "--tier", "rest", PATH=str(tmp_path))
    assert "ERROR: tests need programs that are not on PATH: basename, bash, cat" in done.stderr


def test_a_tier_finds_no_program_besides_python_and_the_basic_ones(suite: Path) -> None:
    names = "sorted(os.listdir(os.environ['PATH'].split(os.pathsep)[-1]))"
    checks = (
        f"import os, shutil, sys\n\ndef test_a():\n    assert {names} == {sorted(BASIC_PROGRAMS.split())}\n"
    )
    (suite / "tests" / "test_long.py").write_text(
        f"{checks}    assert shutil.which('python3') and shutil.which('stromboli')\n"
    )
    done = pytest_in(suite, "--tier", "all")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("tier", "reason", "status"),
    [
        ("rest", "there is no git on PATH", 1),
        ("programs", "there is no git on PATH", 0),
        ("rest", "counts in /proc", 0),
        ("", "there is no git on PATH", 0),
    ],
)
def test_a_tier_fails_if_it_does_not_allow_the_reason_of_a_skip(
    suite: Path, tier: str, reason: str, status: int
) -> None:
    mark = "programs" if tier == "programs" else "slow"
    (suite / "tests" / "test_long.py").write_text(
        f"import pytest\n\n@pytest.mark.{mark}\ndef test_a():\n    pytest.skip({reason!r})\n"
    )
    done = pytest_in(suite, "-o", f"markers={mark}", "--tier", tier) if tier else pytest_in(suite)
    assert done.returncode == status, done.stdout
    message = f"tests/tiers.py does not allow this reason in the tier {tier}: Skipped: {reason}"
    assert (message in done.stdout) == bool(status)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_the_fast_tier_names_files_whose_tests_another_tier_would_not_find(suite: Path, workers: str) -> None:
    mark = "\n\ndef pytest_itemcollected(item):\n    item.add_marker('slow')\n"
    (suite / "conftest.py").write_text(CONFTEST + mark)
    (suite / "tests" / "kubernetes" / "conftest.py").write_text("# their tests are slow\n")
    done = pytest_in(suite, "-o", "markers=slow", "--tier", "fast", "-n", workers)
    assert done.returncode != 0
    found = re.findall(r"^(\S+): tests of the tier rest need one of these words", done.stdout, re.MULTILINE)
    assert sorted(found) == [str(suite / "tests" / name) for name in ("test_long.py", "test_short.py")]


@pytest.mark.parametrize("address", [("192.0.2.1", 9), ("2001:db8::1", 9, 0, 0)])
def test_tests_connect_to_no_other_machine(address: tuple[str, int]) -> None:
    family = socket.AF_INET if len(address) == 2 else socket.AF_INET6
    for connect in (socket.socket.connect, socket.socket.connect_ex):
        with (
            socket.socket(family) as client,
            pytest.raises(OSError, match="tests connect to no other machine: "),
        ):
            connect(client, address)


def test_tests_connect_to_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(("localhost", server.getsockname()[1]))


def test_the_fast_tier_has_some_smoke_tests_of_the_api_server() -> None:
    smoke = [
        name
        for path in TESTS.glob("kubernetes/test_*.py")
        for name, decorator in decorated(path)
        if decorator == "pytest.mark.smoke"
    ]
    assert len(smoke) in SMOKE_TESTS


def test_failed_tests_are_not_repeated() -> None:
    root = TESTS.parent
    locked = (root / "requirements-dev.lock").read_text()
    assert not re.search(r"^(pytest-rerunfailures|pytest-retry|flaky)==", locked, re.M)
    lines = (root / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line.startswith("make ")]
    assert commands == [
        "make lint",
        "make test",
        "make test-rest",
        "make test-kubernetes",
        "make test-embedded",
    ]


def test_options_of_a_run_do_not_reach_pytest_in_tests(suite: Path) -> None:
    (suite / "tests" / "test_long.py").write_text(
        "import os\n\ndef test_a():\n    assert 'PYTEST_ADDOPTS' not in os.environ\n"
    )
    assert pytest_in(suite, "-n", "1", "tests/test_long.py", PYTEST_ADDOPTS="--tier=fast").returncode == 0


def test_tests_use_no_proxy() -> None:
    environment = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "http://proxy:3128", "PATH": "/bin"}
    remove_proxies(environment)
    assert environment == {"PATH": "/bin"}
