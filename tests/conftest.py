"""What all tests share: property tests draw the same examples in CI every time, so that a change is judged alike.

No example has a deadline: a busy machine is not a wrong answer.
"""

import os

import pytest
from hypothesis import settings

EXAMPLES = int(40 * float(os.environ.get("STROMBOLI_EXAMPLES", "1")))
"""How many a property looks at that does not say; thrifty by default."""
settings.register_profile("here", max_examples=EXAMPLES, deadline=None)
settings.register_profile("ci", max_examples=EXAMPLES, derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    servers = ("real", "embedded")
    parser.addoption("--server", choices=servers, default="", help="the API server of tests/kubernetes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The soak takes half a minute whatever the machine, so it begins first and nobody waits for it in the end."""
    items.sort(key=lambda item: item.path.parent.name != "soak")
