"""What a release would run into on this machine, told before anything is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from deploy.release.image_checks import ENGINES, working_engine
from deploy.release.release_plan import Outcome, Release, ReleaseError
from deploy.release.source_checks import check_changelog, check_tree, check_versions, untested


def obstacles(release: Release, steps: Iterable[str]) -> list[str]:
    """What would fail, and what could not be checked, as far as that can be told by looking."""
    return [
        f"{step}: {obstacle}" for step in steps if step in FORESIGHT for obstacle in FORESIGHT[step](release)
    ]


def _failure(check: Callable[[Release], Outcome]) -> Callable[[Release], list[str]]:
    """Of a check that changes nothing, and takes no time."""

    def failure(release: Release) -> list[str]:
        try:
            check(release)
        except (ReleaseError, OSError) as error:
            return [f"would fail: {line}" for line in str(error).splitlines()]
        return []

    return failure


def _missing_tests(release: Release) -> list[str]:
    return ["left out by --skip-tests"] if release.skip_tests else list(untested(release).values())


def _missing_engine(release: Release) -> list[str]:
    if working_engine(release) is not None:
        return []
    return [f"would not be built, only its steps tried: none of {', '.join(ENGINES)} answers"]


def _missing_helm(release: Release) -> list[str]:
    return [] if release.helm else ["would not be packaged: no helm on PATH, and --helm names none"]


def _missing_key(release: Release) -> list[str]:
    if not release.sign_with:
        return ["nothing would be signed: name an SSH key with --sign-with"]
    key = Path(release.sign_with).expanduser()
    return [] if key.exists() else [f"would fail: --sign-with {key}: there is no such key"]


FORESIGHT: dict[str, Callable[[Release], list[str]]] = {
    "tree": _failure(check_tree),
    "versions": _failure(check_versions),
    "changelog": _failure(check_changelog),
    "tests": _missing_tests,
    "image": _missing_engine,
    "chart": _missing_helm,
    "signature": _missing_key,
}
