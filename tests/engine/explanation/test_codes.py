"""Explanations are rendered from data: what reports them does not read words back out of texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import stromboli

SOURCE = Path(stromboli.__file__).parent
PACKAGES = ("engine/explanation", "scheduler/explain", "simulator/explain")
CUTTING = {
    "split",
    "rsplit",
    "splitlines",
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "startswith",
    "endswith",
    "replace",
    "find",
    "rfind",
    "rindex",
    "sub",
    "match",
    "search",
    "fullmatch",
    "findall",
    "finditer",
}
"""Methods of texts and patterns that take texts apart, or tell what is in them."""
TEXTS = {"text", "message", "reason", "summary", "title", "sentence", "remedy", "hint", "why"}
"""Attributes with words for users, which are compared with no other text."""
READS_INPUT = {
    "scheduler/explain/explain_paths.py:parse_path": "the path of a request",
    "scheduler/explain/object_answers.py:_is_owned": "the apiVersion of an owner",
    "scheduler/explain/policy_record.py:_without_secret": "the text of a policy, which has a password",
    "scheduler/explain/decision_history.py:note_decisions": "the reason of an Event, which is a code",
    "scheduler/explain/decision_history.py:note_outcome": "the reason of an Event, which is a code",
    "scheduler/explain/decision_history.py:_job_of_key": "the key of a job, `namespace/name`",
    "scheduler/explain/decision_history.py:joined": "whether two entries are equal",
    "simulator/explain/remedy_search.py:raise_priority": "the prefix of PriorityClasses of Kubernetes",
    "simulator/explain/subject_lookup.py:look_up": "an argument of the command",
    "simulator/explain/subject_lookup.py:_jobs": "the name of a ReplicaSet, which begins with that of its Deployment",
    "simulator/explain/subject_lookup.py:_missing": "an argument of the command",
}
"""Functions that read what users, files or other programs wrote, and what that is."""


def readings(tree: ast.AST, function: str = "") -> Iterator[tuple[str, int]]:
    """The function and the line of everything that takes a text apart or compares words for users."""
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef) else function
        cuts = (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CUTTING
        )
        if cuts or (isinstance(node, ast.Compare) and compares_words(node)):
            yield inner, node.lineno
        yield from readings(node, inner)


def compares_words(node: ast.Compare) -> bool:
    equal = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
    sides = (node.left, *node.comparators)
    named = any(isinstance(side, ast.Attribute) and side.attr in TEXTS for side in sides)
    return named and any(isinstance(operator, equal) for operator in node.ops)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_text_is_read_back(package: str) -> None:
    found = [
        f"{package}/{path.name}:{line} in {function}"
        for path in sorted((SOURCE / package).glob("*.py"))
        for function, line in readings(ast.parse(path.read_text()))
        if f"{package}/{path.name}:{function}" not in READS_INPUT
    ]
    assert found == []


def test_only_what_reads_input_is_exempt() -> None:
    known = {
        f"{package}/{path.name}:{function}"
        for package in PACKAGES
        for path in (SOURCE / package).glob("*.py")
        for function, _ in readings(ast.parse(path.read_text()))
    }
    assert sorted(READS_INPUT.keys() - known) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f(x): return x.message.split(':', 1)[0]",
        "def f(x): return x.reason == 'Larger than the cluster'",
        "def f(x, texts): return x.text in texts",
        "def f(x, name): return x.replace(name, 'hidden')",
    ],
)
def test_the_check_finds_what_reads_a_text(code: str) -> None:
    assert list(readings(ast.parse(code))) == [("f", 1)]


def test_every_gate_gives_its_diagnoses_a_code() -> None:
    """All but the numbers for a verdict, which take the code of the reason that they are about."""
    without = [
        f"{path.name}:{function.name}"
        for path in sorted((SOURCE / "engine/explanation").glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Diagnosis"
        and "code" not in {keyword.arg for keyword in node.keywords}
    ]
    assert without == ["node_gates.py:_numbers"]
