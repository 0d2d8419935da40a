"""The image without an engine, and engines that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.release.image_checks import check_image
from deploy.release.release_plan import ReleaseError, Result
from tests.deploy.release.small_repository import SmallRepository, program

NO_IMAGE = "no image was built: there is none of podman, buildah, docker that answers"


pytestmark = pytest.mark.usefixtures("no_engine")


def test_without_an_engine_the_steps_are_run_and_the_record_says_so(repository: SmallRepository) -> None:
    outcome = check_image(repository.release())
    assert outcome.result is Result.PASSED
    assert NO_IMAGE in outcome.unchecked


def test_a_file_that_the_repository_lacks_is_named(repository: SmallRepository) -> None:
    repository.edit("deploy/Containerfile", "COPY src ./src", "COPY sources ./src")
    with pytest.raises(ReleaseError, match="COPY sources: the repository has no such file"):
        check_image(repository.commit())


def test_a_file_that_never_reaches_the_builder_is_named(repository: SmallRepository) -> None:
    repository.edit("deploy/Containerfile.dockerignore", "!examples/demo\n", "")
    with pytest.raises(
        ReleaseError, match=r"COPY examples/demo: deploy/Containerfile\.dockerignore keeps it out"
    ):
        check_image(repository.commit())


def test_a_step_that_fails_is_shown_with_its_output(repository: SmallRepository) -> None:
    repository.edit("deploy/Containerfile", "mkdir -p /dist", "echo no wheel was made && false")
    with pytest.raises(ReleaseError, match="ended with 1\nno wheel was made"):
        check_image(repository.commit())


def test_an_entry_point_of_another_version_is_refused(repository: SmallRepository) -> None:
    repository.edit("deploy/Containerfile", "echo stromboli 1.2.3", "echo stromboli 1.2.2")
    with pytest.raises(ReleaseError, match=r"says 'stromboli 1\.2\.2', not 1\.2\.3"):
        check_image(repository.commit())


def test_an_engine_that_answers_builds_and_runs_the_image(
    repository: SmallRepository, no_engine: Path
) -> None:
    log = no_engine / "log"
    program(no_engine / "podman", f'echo "$@" >> {log}\ntest "$1" != run || echo stromboli 1.2.3')
    outcome = check_image(repository.release())
    assert (
        outcome.detail == "stromboli:1.2.3 built by podman, runs with a read-only root and without a network"
    )
    assert outcome.unchecked == ()
    assert log.read_text().splitlines() == [
        "info",
        "build -f deploy/Containerfile -t stromboli:1.2.3 .",
        "run --rm --read-only --network=none stromboli:1.2.3 --version",
    ]


def test_an_image_of_another_version_is_refused(repository: SmallRepository, no_engine: Path) -> None:
    program(no_engine / "podman", "echo stromboli 1.2.2")
    with pytest.raises(ReleaseError, match=r"stromboli:1\.2\.3 --version says 'stromboli 1\.2\.2'"):
        check_image(repository.release())
