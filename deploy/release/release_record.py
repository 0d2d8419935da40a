"""What is written of a release: a record for people and programs, the sums of all files, and a signature."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.chart import semantic_version
from deploy.release.distribution_checks import digest
from deploy.release.release_plan import Outcome, Release, ReleaseError, Result, not_checked, passed, run

RECORD, TABLE, SUMS = "release.json", "release.txt", "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"
NAMESPACE = "stromboli-release"
"""What a signature is for, so that it cannot be taken for one of something else."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A step and how it ended."""

    step: str
    outcome: Outcome
    seconds: float


def record(release: Release, entries: list[Entry]) -> dict[str, Any]:
    """A release as data."""
    return {
        "version": release.version,
        "commit": release.commit,
        "committed": release.committed,
        "signedOffBy": release.signer,
        "python": platform.python_version(),
        "steps": [
            {
                "step": entry.step,
                "result": entry.outcome.result.value,
                "detail": entry.outcome.detail,
                "notChecked": list(entry.outcome.unchecked),
            }
            for entry in entries
        ],
        "files": [
            {"name": file.name, "bytes": file.stat().st_size, "sha256": digest(file)}
            for file in release.artifacts()
        ],
    }


def table(release: Release, entries: list[Entry]) -> str:
    """The same for people."""
    width = max(len(entry.step) for entry in entries)
    lines = [
        f"Stromboli {release.version}",
        f"Commit {release.commit} of {release.committed}",
        f"Signed off by {release.signer}",
        "",
        *(
            f"{entry.step:{width}}  {entry.outcome.result.value:11}  {entry.outcome.detail}"
            for entry in entries
        ),
    ]
    unchecked = [f"- {entry.step}: {what}" for entry in entries for what in entry.outcome.unchecked]
    if unchecked:
        lines += ["", "Not checked:", *unchecked]
    files = [f"{digest(file)}  {file.name}" for file in release.artifacts()]
    return "\n".join([*lines, "", *files]) + "\n"


def write_record(release: Release, entries: list[Entry]) -> None:
    """Both, in the folder with the files."""
    release.out.mkdir(parents=True, exist_ok=True)
    (release.out / RECORD).write_text(json.dumps(record(release, entries), indent=2) + "\n")
    (release.out / TABLE).write_text(table(release, entries))


def write_sums(release: Release) -> Outcome:
    """The sums of all files and of the record, as `sha256sum --check` reads them."""
    files = [*release.artifacts(), release.out / RECORD, release.out / TABLE]
    (release.out / SUMS).write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))
    return passed(f"{SUMS} of {len(files)} files")


def sign(release: Release) -> Outcome:
    """Sign the sums with an SSH key, and verify that at once."""
    (release.out / SIGNATURE).unlink(missing_ok=True)
    if not release.sign_with:
        return not_checked("nothing was signed: name an SSH key with --sign-with")
    if shutil.which("ssh-keygen") is None:
        raise ReleaseError("there is no ssh-keygen here; install OpenSSH, or leave out --sign-with")
    key = Path(release.sign_with).expanduser()
    if not key.exists():
        raise ReleaseError(f"--sign-with {key}: there is no such key")
    run(["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), SUMS], release.out)
    fingerprint = _verify(release, key)
    return passed(f"{SIGNATURE} by {fingerprint}, verified")


def _verify(release: Release, key: Path) -> str:
    """The fingerprint of the key that signed, if its public half says so, too."""
    public = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    if not public.exists():
        raise ReleaseError(
            f"{public}: the public half of the key is missing; ssh-keygen -y -f {key} > {public}"
        )
    identity = release.signer.rpartition("<")[2].rstrip(">") or "releaser"
    with tempfile.NamedTemporaryFile("w", prefix="allowed-signers-") as signers:
        signers.write(f"{identity} {' '.join(public.read_text().split()[:2])}\n")
        signers.flush()
        asked = ["-n", NAMESPACE, "-I", identity, "-f", signers.name, "-s", SIGNATURE]
        run(["ssh-keygen", "-Y", "verify", *asked], release.out, text=(release.out / SUMS).read_text())
    return run(["ssh-keygen", "-l", "-f", str(public)], release.out).split()[1]


def publishing(release: Release) -> list[str]:
    """What a person runs when all of it is well."""
    tag = f"v{release.version}"
    chart = f"{release.out.name}/stromboli-{semantic_version(release.version)}.tgz"
    image = f"stromboli:{release.version}"
    return [
        f"git tag -s {tag} {release.commit[:12]} && git push origin {tag}",
        f"twine upload {release.out.name}/*.whl {release.out.name}/stromboli*.tar.gz",
        f"podman build -f deploy/Containerfile -t registry.example.com/{image} .",
        f"podman push registry.example.com/{image}",
        f"helm push {chart} oci://registry.example.com/charts",
    ]


def failed(problem: str) -> Outcome:
    return Outcome(Result.FAILED, problem)
