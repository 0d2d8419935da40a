"""The Helm chart: linted, rendered and packaged, where there is a Helm."""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

from deploy.chart import semantic_version
from deploy.release.release_plan import Outcome, Release, ReleaseError, not_checked, passed, run

CHART = "deploy/chart"
NAME = "stromboli"
NO_HELM = (
    "no chart was packaged: no helm on PATH, and --helm names none; tests/kubernetes/program.py builds one"
)


def check_chart(release: Release) -> Outcome:
    """Lint it, render it with its own values, and package it; the package has the files of the chart."""
    if not release.tracked(CHART):
        return not_checked(f"there is no {CHART}")
    if not release.helm:
        return not_checked(NO_HELM)
    release.out.mkdir(parents=True, exist_ok=True)
    for old in release.artifacts(".tgz"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="stromboli-release-") as folder:
        tree = release.export(Path(folder) / "tree")
        run([release.helm, "lint", "--strict", CHART], tree)
        rendered = run([release.helm, "template", NAME, CHART], tree)
        if f"stromboli:{release.version}" not in rendered:
            raise ReleaseError(
                f"helm template renders no image stromboli:{release.version}; run `make chart`"
            )
        run([release.helm, "package", "--destination", str(release.out), CHART], tree)
        package = release.out / f"{NAME}-{semantic_version(release.version)}.tgz"
        _compare(package, tree / CHART)
    return passed(
        f"{package.name}: lint, template, package",
        "the package is not the same to the byte each time: it has times",
    )


def _compare(package: Path, chart: Path) -> None:
    """The package has the files of the chart and no others; `helm package` writes Chart.yaml anew."""
    with tarfile.open(package) as files:
        packaged = {
            member.name.partition("/")[2]: content.read()
            for member in files
            if (content := files.extractfile(member)) is not None
        }
    here = _files(chart)
    differ = [
        name
        for name in packaged.keys() | here.keys()
        if packaged.get(name) != here.get(name) and name not in ("Chart.yaml", ".helmignore")
    ]
    if differ:
        raise ReleaseError(f"{package.name}: {', '.join(sorted(differ)[:10])} differ from {chart.name}")


def _files(chart: Path) -> dict[str, bytes]:
    """The files of a chart, and those that its links lead to."""
    paths = [Path(folder) / name for folder, _, names in os.walk(chart, followlinks=True) for name in names]
    return {path.relative_to(chart).as_posix(): path.read_bytes() for path in paths}
