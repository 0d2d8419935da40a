"""The chart of a release, with the real Helm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deploy.release.chart_checks import check_chart
from deploy.release.release_plan import ReleaseError, Result
from tests.deploy.release.small_repository import SmallRepository


@pytest.fixture
def helm() -> str:
    found = shutil.which("helm")
    if found is None:
        pytest.skip("there is no helm on PATH")
    return found


def test_without_helm_the_chart_is_not_checked(repository: SmallRepository, tmp_path: Path) -> None:
    outcome = check_chart(repository.release(environment={"PATH": str(tmp_path)}))
    assert outcome.result is Result.NOT_CHECKED
    assert outcome.detail.startswith("no chart was packaged: no helm on PATH")


def test_without_a_chart_there_is_nothing_to_check(repository: SmallRepository) -> None:
    repository.git("rm", "-rq", "deploy/chart")
    repository.commit()
    assert check_chart(repository.release(helm="helm")).detail == "there is no deploy/chart"


def test_the_package_is_the_chart(repository: SmallRepository, helm: str) -> None:
    (repository.root / "dist").mkdir()
    (repository.root / "dist" / "stromboli-1.2.2.tgz").write_bytes(b"")
    outcome = check_chart(repository.release(helm=helm))
    assert outcome.result is Result.PASSED
    assert [file.name for file in (repository.root / "dist").iterdir()] == ["stromboli-1.2.3.tgz"]


def test_a_chart_that_renders_another_image_is_refused(repository: SmallRepository, helm: str) -> None:
    repository.edit("deploy/chart/templates/pod.yaml", "{{ .Chart.AppVersion }}", "1.2.2")
    repository.commit()
    with pytest.raises(ReleaseError, match=r"renders no image stromboli:1\.2\.3"):
        check_chart(repository.release(helm=helm))


def test_a_chart_that_lint_complains_of_is_refused(repository: SmallRepository, helm: str) -> None:
    repository.edit("deploy/chart/templates/pod.yaml", "{{ .Chart.AppVersion }}", "{{ .Chart.AppVersion }")
    repository.commit()
    with pytest.raises(ReleaseError, match="lint --strict deploy/chart: ended with 1"):
        check_chart(repository.release(helm=helm))
