"""Which tests a tier has."""

import re
from pathlib import Path

TESTS = Path(__file__).parent


def test_the_examples_of_each_property_are_scaled() -> None:
    """Otherwise the fast tier has them in full, and the other tier has the same again."""
    fixed = [
        f"{path.relative_to(TESTS)}: {line.strip()}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"max_examples ?= ?\d", line)
    ]
    assert fixed == []
