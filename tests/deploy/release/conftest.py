"""Repositories to be released."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.release.distribution_checks import build_distributions
from tests.deploy.release.small_repository import SmallRepository


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.programs("git"))


@pytest.fixture
def repository(tmp_path: Path) -> SmallRepository:
    """A repository that can be released as it is."""
    return SmallRepository(tmp_path)


@pytest.fixture
def built(repository: SmallRepository) -> SmallRepository:
    """The same with its distributions in `dist`."""
    build_distributions(repository.release())
    return repository
