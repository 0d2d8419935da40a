"""`python -m deploy.release`: make and check all that a release consists of; publish nothing."""

from __future__ import annotations

import argparse
import shutil
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from deploy.release import (
    chart_checks,
    distribution_checks,
    dry_run,
    image_checks,
    release_record,
    source_checks,
)
from deploy.release.release_plan import Outcome, Release, ReleaseError, Result, run
from deploy.release.release_record import Entry

STEPS: dict[str, Callable[[Release], Outcome]] = {
    "tree": source_checks.check_tree,
    "versions": source_checks.check_versions,
    "changelog": source_checks.check_changelog,
    "lint": source_checks.check_lint,
    "tests": source_checks.check_tests,
    "build": distribution_checks.build_distributions,
    "contents": distribution_checks.check_contents,
    "metadata": distribution_checks.check_metadata,
    "sdists": distribution_checks.check_sdists,
    "installation": distribution_checks.check_installation,
    "image": image_checks.check_image,
    "chart": chart_checks.check_chart,
}
SEALING: dict[str, Callable[[Release], Outcome]] = {
    "sums": release_record.write_sums,
    "signature": release_record.sign,
}
"""After the record is written, which they cover."""
FAILED, WRONG_USE = 1, 2


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 if nothing failed, 1 if a step did, 2 for a wrong command line."""
    asked = _parser().parse_args(arguments)
    try:
        release = plan(asked)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USE
    chosen = [name for name in (*STEPS, *SEALING) if not asked.only or name in asked.only]
    print(f"Stromboli {release.version}, commit {release.commit[:12]}, signed off by {release.signer}")
    if asked.dry_run:
        _foretell(release, chosen)
        return 0
    return carry_out(release, chosen)


def _foretell(release: Release, chosen: list[str]) -> None:
    """The steps in words, and what they would run into here."""
    for name in chosen:
        print(f"  {name:13} {(STEPS | SEALING)[name].__doc__}")
    ahead = dry_run.obstacles(release, chosen)
    print("On this machine:" if ahead else "Nothing is missing on this machine.")
    print(*(f"  {obstacle}\n" for obstacle in ahead), sep="", end="")


def carry_out(release: Release, chosen: list[str]) -> int:
    """Take the steps in turn, up to the first that fails; the record is written in any case."""
    release.out.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    fine = _take(release, {name: step for name, step in STEPS.items() if name in chosen}, entries)
    if entries:
        release_record.write_record(release, entries)
    if fine:
        fine = _take(release, {name: step for name, step in SEALING.items() if name in chosen}, entries)
    _summarize(release, entries)
    return 0 if fine else FAILED


def _take(release: Release, steps: dict[str, Callable[[Release], Outcome]], entries: list[Entry]) -> bool:
    """Whether none failed."""
    for name, step in steps.items():
        if sys.stdout.isatty():
            print(f"  {name:13} ...", end="\r", flush=True)
        began = time.monotonic()
        try:
            outcome = step(release)
        except (ReleaseError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            outcome = release_record.failed(str(error))
        seconds = time.monotonic() - began
        entries.append(Entry(name, outcome, seconds))
        print(f"  {name:13} {outcome.result.value} ({seconds:.1f} s): {outcome.detail}", flush=True)
        if outcome.result is Result.FAILED:
            return False
    return True


def _summarize(release: Release, entries: list[Entry]) -> None:
    unchecked = [f"  {entry.step}: {what}" for entry in entries for what in entry.outcome.unchecked]
    if unchecked:
        print("Not checked:", *unchecked, sep="\n")
    if entries and entries[-1].outcome.result is Result.FAILED:
        print(f"Failed at the step {entries[-1].step}; the record is {release.out / release_record.RECORD}")
        return
    print(f"Files, sums and the record are in {release.out}. To publish, if you are content:")
    print(*(f"  {line}" for line in release_record.publishing(release)), sep="\n")


# -- what was asked for


def plan(asked: argparse.Namespace) -> Release:
    """The release of the commit that is checked out."""
    root = Path(run(["git", "rev-parse", "--show-toplevel"], Path.cwd()).strip())
    commit, committed, epoch = run(["git", "log", "-1", "--format=%H%n%cI%n%ct"], root).split()
    return Release(
        root=root,
        out=(root / asked.out).resolve(),
        version=asked.version or _version_of_tag(root),
        commit=commit,
        committed=committed,
        epoch=int(epoch),
        signer=run(["git", "var", "GIT_COMMITTER_IDENT"], root).rpartition(" ")[0].rpartition(" ")[0],
        skip_tests=asked.skip_tests,
        helm=asked.helm or shutil.which("helm") or "",
        sign_with=asked.sign_with,
    )


def _version_of_tag(root: Path) -> str:
    tags = [tag for tag in run(["git", "tag", "--points-at", "HEAD"], root).split() if tag.startswith("v")]
    if len(tags) != 1:
        raise ReleaseError(f"the commit has {len(tags)} tags that begin with v; set one, or say --version")
    return tags[0].removeprefix("v")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument(
        "--version", default="", help="the version to release (that of the tag of this commit)"
    )
    parser.add_argument(
        "--out", default="dist", metavar="FOLDER", help="where files and the record go (dist)"
    )
    parser.add_argument(
        "--skip-tests", action="store_true", help="leave out lint and tests; the record says so"
    )
    parser.add_argument("--sign-with", default="", metavar="KEY", help="sign the sums with this SSH key")
    parser.add_argument("--helm", default="", metavar="PROGRAM", help="Helm, if it is not on PATH")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="STEP",
        choices=[*STEPS, *SEALING],
        help=f"this step alone; repeatable: {', '.join((*STEPS, *SEALING))}",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and what is missing here"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
