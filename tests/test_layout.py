"""The layout of the source tree: packages without import cycles, pages and scripts that name what exists."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "stromboli"
PAGES = [ROOT / "docs" / "design.md", ROOT / "CONTRIBUTING.md"]
FILES = sorted(SOURCE.rglob("*.py"))
SCRIPTS = sorted(
    path for folder in ("bench", "deploy", "docs", "examples") for path in (ROOT / folder).rglob("*.py")
)


def imports(file: Path) -> set[str]:
    """The modules of ours that a file imports, those for type checking included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("stromboli.")}


def package_graph(package: Path) -> dict[str, set[str]]:
    """The imports between the sub-packages of a package."""
    packages = {directory.name for directory in package.iterdir() if (directory / "__init__.py").exists()}
    prefix = ".".join(["stromboli", *package.relative_to(SOURCE).parts])
    graph: dict[str, set[str]] = defaultdict(set)
    for importer in packages:
        for file in (package / importer).rglob("*.py"):
            for name in imports(file):
                other = name.removeprefix(f"{prefix}.").split(".")[0] if name.startswith(f"{prefix}.") else ""
                if other in packages and other != importer:
                    graph[importer].add(other)
    return graph


PACKAGES = sorted({file.parent for file in FILES if file.name == "__init__.py"})


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(SOURCE.parent)))
def test_sub_packages_import_each_other_in_one_direction(package):
    try:
        TopologicalSorter(package_graph(package)).prepare()
    except CycleError as error:
        pytest.fail(f"{package.relative_to(ROOT)}: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_map_of_the_source_names_files_that_exist(page):
    places = [SOURCE, ROOT, SOURCE.parent, *(folder for folder in SOURCE.rglob("*") if folder.is_dir())]
    names = set(re.findall(r"`([a-z_./]+\.(?:py|txt|json|md))`", page.read_text()))
    assert names
    assert sorted(name for name in names if not any((place / name).exists() for place in places)) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_scripts_import_of_us_exists(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stromboli"):
            module = importlib.import_module(node.module)
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            assert [name for name in missing if not find_spec(f"{node.module}.{name}")] == []
