"""What is imported is declared: no import works only because another package brings it along."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN = {
    "stromboli",
    *(folder.name for folder in ROOT.iterdir()),
    *(script.stem for script in ROOT.glob("docs/*.py")),
}
DISTRIBUTIONS = {
    "re2": "google-re2",
    "xdist": "pytest-xdist",
    "yaml": "PyYAML",
}
"""Packages that are not named after the distribution that they come with."""
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = PYPROJECT["project"]["dependencies"]
EXTRAS = [entry for extra in PYPROJECT["project"]["optional-dependencies"].values() for entry in extra]
GROUPS = PYPROJECT["dependency-groups"].values()
DEVELOPMENT = [entry for group in GROUPS for entry in group if isinstance(entry, str)]


def distribution(requirement: str) -> str:
    """`PyYAML>=6.0.2` is pyyaml."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def imported(*folders: str) -> set[str]:
    """The packages that files of these folders import, our own and Python's aside."""
    names: set[str] = set()
    for file in (file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - OWN - sys.stdlib_module_names


@pytest.mark.parametrize(
    ("folders", "requirements"),
    [(("src",), RUNTIME + EXTRAS), (("tests", "bench", "docs", "examples"), RUNTIME + DEVELOPMENT)],
    ids=["src", "tests"],
)
def test_every_import_is_a_declared_dependency(folders: tuple[str, ...], requirements: list[str]) -> None:
    declared = {distribution(requirement) for requirement in requirements}
    needed = {distribution(DISTRIBUTIONS.get(name, name)) for name in imported(*folders)}
    assert sorted(needed - declared) == []


def test_extras_are_imported_by_functions_that_need_them_and_never_at_the_start() -> None:
    extras = {distribution(requirement) for requirement in EXTRAS}
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not extras & {name.partition(".")[0] for name in names}, file
