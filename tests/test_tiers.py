"""Which tests a tier has."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tiers import DURATIONS, SHARED_CLUSTERS, remove_proxies

TESTS = Path(__file__).parent
BUILDS = {"built", "helm"}
"""Fixtures of a run that start no servers."""
SMOKE_TESTS = range(20, 31)


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
    assert [name for name in json.loads(DURATIONS.read_text()) if not (TESTS / name).exists()] == []


def test_the_tests_of_each_shared_control_plane_are_a_group() -> None:
    fixtures = {
        name
        for path in TESTS.rglob("conftest.py")
        for name, decorator in decorated(path)
        if re.search(r"scope='(session|package)'", decorator)
    }
    assert fixtures - BUILDS == set(SHARED_CLUSTERS)


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
    commands = [line for line in (root / ".ci" / "run").read_text().splitlines() if line.startswith("make ")]
    assert commands == [
        "make lint",
        "make test",
        "make test-rest",
        "make test-kubernetes",
        "make test-embedded",
    ]


def test_tests_use_no_proxy() -> None:
    environment = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "http://proxy:3128", "PATH": "/bin"}
    remove_proxies(environment)
    assert environment == {"PATH": "/bin"}
