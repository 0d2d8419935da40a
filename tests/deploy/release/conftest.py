"""Repositories to be released."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deploy.release.distribution_checks import build_distributions
from deploy.release.image_checks import ENGINES
from tests.deploy.release.small_repository import SmallRepository, program


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.programs("git"))


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory at the front of PATH with engines that do not answer, so that no image is built or pulled."""
    directory = tmp_path_factory.mktemp("engines")
    for engine in ENGINES:
        program(directory / engine, "exit 1")
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


@pytest.fixture
def repository(tmp_path: Path) -> SmallRepository:
    """A repository that can be released as it is."""
    return SmallRepository(tmp_path)


@pytest.fixture
def built(repository: SmallRepository) -> SmallRepository:
    """The same with its distributions in `dist`."""
    build_distributions(repository.release())
    return repository
