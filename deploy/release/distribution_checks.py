"""Wheels and source distributions: built twice, compared, looked into, installed and run."""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from packaging.metadata import Metadata

from deploy.release.release_plan import MINUTE, Outcome, Release, ReleaseError, passed, run

PACKAGES = {"stromboli": ".", "stromboli_vcctl": "packages/vcctl"}
"""Folder of each distribution."""
DEMO = ("examples/demo/", "stromboli/cli/demo/manifests/")
"""What the wheel has from elsewhere than src, and where."""
SDIST = (
    *("src", "tests", "bench", "changelog.d", "deploy", "docs", "examples", "packages", "stubs"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", ".gitignore", "pyproject.toml"),
    *("requirements.lock", "requirements-build.lock", "requirements-dev.lock", "requirements-measure.lock"),
)
LINKS = "deploy/chart/files/"
"""To files that the source distribution has anyway."""
DIST_INFO = {"METADATA", "WHEEL", "RECORD", "entry_points.txt"}
LARGEST = 100 * 1024 * 1024
"""Bytes of a distribution: PyPI takes no larger file."""
EXAMPLE = "examples/cluster.yaml"
LONGEST_INSTALL = 10 * MINUTE


def build_distributions(release: Release) -> Outcome:
    """Build all distributions twice, from the commit alone, and keep them if both are the same to the byte."""
    release.out.mkdir(parents=True, exist_ok=True)
    for old in release.artifacts(".whl", ".tar.gz"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="stromboli-release-") as folder:
        first, second = (
            _build(release, Path(folder) / name, zone) for name, zone in (("a", "UTC"), ("b", "Asia/Tokyo"))
        )
        compare(first, second)
        for file in first:
            (release.out / file.name).write_bytes(file.read_bytes())
    names = ", ".join(file.name for file in first)
    return passed(f"{names}: twice the same, with the time of the commit")


def _build(release: Release, folder: Path, zone: str) -> list[Path]:
    """All distributions, from an export of the commit."""
    tree = release.export(folder / "tree")
    environment = {**release.environment, "SOURCE_DATE_EPOCH": str(release.epoch), "TZ": zone}
    for package in PACKAGES.values():
        out = str(folder / "dist")
        run([sys.executable, "-m", "hatchling", "build", "-d", out], tree / package, 5 * MINUTE, environment)
    return sorted((folder / "dist").iterdir())


def compare(first: list[Path], second: list[Path]) -> None:
    """Refuse two builds that differ."""
    names = [[file.name for file in files] for files in (first, second)]
    if names[0] != names[1]:
        raise ReleaseError(f"two builds made different files: {names[0]} and {names[1]}")
    for file, other in zip(first, second, strict=True):
        if digest(file) != digest(other):
            raise ReleaseError(f"{file.name}: two builds of one commit differ; {_difference(file, other)}")


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _difference(file: Path, other: Path) -> str:
    """Which of their files differ, as far as that can be told."""
    here, there = contents(file), contents(other)
    names = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    return f"in {', '.join(names[:10])}" if names else "in the order, the times or the modes of their files"


def contents(file: Path) -> dict[str, str]:
    """Digest of every file in a wheel or a source distribution, by its name."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return {name: hashlib.sha256(wheel.read(name)).hexdigest() for name in wheel.namelist()}
    with tarfile.open(file) as sdist:
        return {
            member.name: hashlib.sha256(content.read()).hexdigest()
            for member in sdist
            if (content := sdist.extractfile(member)) is not None
        }


# -- what is inside


def check_contents(release: Release) -> Outcome:
    """Wheels have the files of the package, source distributions those of the repository, and nothing else."""
    counted = []
    for file in _distributions(release):
        if file.stat().st_size > LARGEST:
            raise ReleaseError(f"{file.name} has {file.stat().st_size} bytes, and PyPI takes {LARGEST}")
        names = set(contents(file))
        expected = _expected(release, file)
        _compare_names(file.name, names, expected)
        counted.append(f"{file.name} {len(names)} files")
    return passed(", ".join(counted))


def _distributions(release: Release) -> list[Path]:
    files = release.artifacts(".whl", ".tar.gz") if release.out.exists() else []
    if len(files) != 2 * len(PACKAGES):
        raise ReleaseError(
            f"{release.out} has {len(files)} distributions, not {2 * len(PACKAGES)}; run the step `build` first"
        )
    return files


def _compare_names(name: str, names: set[str], expected: set[str]) -> None:
    unsafe = [
        path for path in names if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
    ]
    stray, missing = sorted(names - expected), sorted(expected - names)
    problems = [
        *(f"has {path}, which leads out of its folder" for path in unsafe),
        *(f"has {path}, which does not belong there" for path in stray[:10]),
        *(f"lacks {path}" for path in missing[:10]),
    ]
    if problems:
        raise ReleaseError("\n".join(f"{name} {problem}" for problem in problems))


def _expected(release: Release, file: Path) -> set[str]:
    """The names of the files that a distribution is made of."""
    package = file.name.partition("-")[0]
    whole = f"{package}-{release.version}"
    if file.suffix == ".whl":
        return _of_wheel(release, package, f"{whole}.dist-info")
    return {f"{whole}/{path}" for path in (*_of_sdist(release, package), "PKG-INFO")}


def _of_wheel(release: Release, package: str, info: str) -> set[str]:
    licences = {f"{info}/licenses/LICENSE"} if package == "stromboli" else set()
    names = {f"{info}/{name}" for name in DIST_INFO} | licences
    if package == "stromboli":
        names |= {path.removeprefix("src/") for path in release.tracked("src/stromboli")}
        names |= {path.replace(*DEMO) for path in release.tracked(DEMO[0])}
    return names


def _of_sdist(release: Release, package: str) -> set[str]:
    folder = PACKAGES[package]
    if folder == ".":
        return {path for path in release.tracked(*SDIST) if not path.startswith(LINKS)}
    paths = {path.removeprefix(f"{folder}/") for path in release.tracked(folder)}
    return paths | {".gitignore"}


# -- what they say of themselves


def check_metadata(release: Release) -> Outcome:
    """What package indexes read: valid fields, a description that they can show, the version."""
    for file in _distributions(release):
        check_one_metadata(file, release.version)
    return passed(
        "fields are valid, descriptions are Markdown",
        "how package indexes show the README: its pictures have relative links",
    )


def check_one_metadata(file: Path, version: str) -> None:
    raw = _metadata(file)
    try:
        fields = Metadata.from_email(raw, validate=True)
    except ExceptionGroup as group:
        problems = "; ".join(str(problem) for problem in group.exceptions)
        raise ReleaseError(f"{file.name}: {problems}") from None
    if str(fields.version) != version:
        raise ReleaseError(f"{file.name} has version {fields.version}, not {version}")
    if fields.description_content_type != "text/markdown" or not (fields.description or "").strip():
        raise ReleaseError(f"{file.name} has no description in Markdown: package indexes would show nothing")


def _metadata(file: Path) -> bytes:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            return wheel.read(name)
    with tarfile.open(file) as sdist:
        content = sdist.extractfile(f"{file.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert content is not None
        return content.read()


# -- from a source distribution to a program


def check_sdists(release: Release) -> Outcome:
    """The wheel that is built from a source distribution is the one that is published."""
    with tempfile.TemporaryDirectory(prefix="stromboli-release-") as folder:
        for sdist in [file for file in _distributions(release) if file.suffix == ".gz"]:
            with tarfile.open(sdist) as files:
                files.extractall(folder, filter="data")
            tree = Path(folder) / sdist.name.removesuffix(".tar.gz")
            environment = {**release.environment, "SOURCE_DATE_EPOCH": str(release.epoch)}
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tree / "dist")]
            run(command, tree, 5 * MINUTE, environment)
            (wheel,) = (tree / "dist").iterdir()
            compare([release.out / wheel.name], [wheel])
    return passed("wheels of source distributions are the published ones")


def check_installation(release: Release) -> Outcome:
    """The wheels, with what the lock file pins, run in a fresh environment."""
    wheels = [str(file) for file in _distributions(release) if file.suffix == ".whl"]
    with tempfile.TemporaryDirectory(prefix="stromboli-release-") as folder:
        tree = release.export(Path(folder) / "tree")
        programs = Path(folder) / "venv" / "bin"
        run([sys.executable, "-m", "venv", str(programs.parent)], tree)
        pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check"]
        locked = ["install", "--only-binary=:all:", "--require-hashes", "-r", "requirements.lock"]
        run([*pip, *locked], tree, LONGEST_INSTALL)
        run([*pip, "install", "--no-deps", "--no-index", *wheels], tree, LONGEST_INSTALL)
        run([*pip, "check"], tree)
        _try_programs(release, programs, Path(folder), tree)
    return passed(
        f"pip check, stromboli --version, stromboli plan, vcctl --help, with Python {sys.version.split()[0]}"
    )


def _try_programs(release: Release, programs: Path, folder: Path, tree: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    clean["HOME"] = str(folder)
    shown = run([str(programs / "stromboli"), "--version"], folder, MINUTE, clean)
    if release.version not in shown:
        raise ReleaseError(f"stromboli --version says {shown.strip()!r}, not {release.version}")
    plan = run([str(programs / "stromboli"), "plan", "-f", str(tree / EXAMPLE)], folder, MINUTE, clean)
    if not plan.startswith("Binds"):
        raise ReleaseError(f"stromboli plan -f {EXAMPLE} binds nothing:\n{plan}")
    run([str(programs / "vcctl"), "--help"], folder, MINUTE, clean)
