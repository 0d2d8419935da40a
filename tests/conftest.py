"""What all tests share: the options, tiers and order of `tests/tiers.py`, and the API server of `tests/kubernetes`."""

import pytest

from tests import tiers
from tests.tiers import (
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_ignore_collect,
    pytest_make_collect_report,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)

__all__ = (
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_ignore_collect",
    "pytest_make_collect_report",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_xdist_auto_num_workers",
    "pytest_xdist_make_scheduler",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    servers = ("real", "embedded")
    parser.addoption("--server", choices=servers, default="", help="the API server of tests/kubernetes")
    tiers.add_options(parser)
