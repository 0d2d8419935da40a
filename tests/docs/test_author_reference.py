"""What plugins and actions may rely on: it is there, it is explained, and our own examples need nothing else."""

import ast
import inspect
from collections.abc import Iterator
from enum import IntEnum
from itertools import chain
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, script

reference = script("author_reference")
PAGE = (ROOT / "docs" / "author-reference.md").read_text()
KINDS = sorted(reference.SURFACE, key=lambda kind: kind.__name__)
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
GUIDES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("custom-plugins", "testing-plugins")),
]
UNITS = ("econds", "ercent", "multiplied")
each_class = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@each_class
def test_the_page_shows_every_class_that_authors_meet(kind: type) -> None:
    assert f"<!-- generated: members {kind.__name__} -->" in PAGE
    assert kind.__doc__


@each_class
def test_every_member_is_explained_in_a_sentence(kind: type) -> None:
    for member in reference.offered(kind):
        assert not member.name.startswith("_")
        assert len(member.doc.split()) >= 3, f"{member.name} needs a docstring that helps"
        assert member.doc.endswith((".", ".)", "`")), f"{member.name}: {member.doc}"


@each_class
def test_every_member_says_its_type_and_every_number_its_unit(kind: type) -> None:
    for member in reference.offered(kind):
        assert member.type or member.signature or issubclass(kind, IntEnum), f"{member.name} needs a type"
        if member.type in ("float", "float | None"):
            assert any(unit in member.doc for unit in UNITS), f"{member.name} is a number of what?"


@pytest.mark.parametrize("function", list(chain(*reference.FUNCTIONS.values())))
def test_every_function_is_explained_in_a_sentence(function) -> None:
    assert len(inspect.getdoc(function).split()) >= 3


def uses(source: str) -> Iterator[tuple[type, str]]:
    """The members that functions use of parameters which are annotated with a class that authors meet."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            known = {
                parameter.arg: reference.CLASSES[parameter.annotation.id]
                for parameter in function.args.args
                if isinstance(parameter.annotation, ast.Name) and parameter.annotation.id in reference.CLASSES
            }
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id in known
                ):
                    yield known[node.value.id], node.attr


@pytest.mark.parametrize("page", [*EXAMPLES, *GUIDES], ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_use_nothing_but_what_is_offered(page: Path) -> None:
    text = page.read_text()
    sources = [text] if page.suffix == ".py" else [b.body for b in blocks(text) if b.language == "python"]
    for source in sources:
        for kind, name in uses(source):
            assert name in reference.SURFACE[kind].split(), (
                f"{kind.__name__}.{name} is no part of what we offer"
            )
