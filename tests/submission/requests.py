"""Requests for tests, as `stromboli run` and `stromboli submit` make them."""

from __future__ import annotations

from typing import Any

from stromboli.submission.job_manifest import job_manifest
from stromboli.submission.job_request import JobRequest
from stromboli.submission.run_settings import RunSettings, Surroundings, request_of
from stromboli.submission.script_comments import read_comments
from stromboli.submission.slurm_request import SlurmRequest, slurm_request

HERE = Surroundings(suffix="x2x4b", number=4711, env={"TOKEN": "secret"}, image="none", workdir="/home/me")
Manifest = dict[str, Any]


def request(*command: str, script: str | None = None, **settings: Any) -> JobRequest:
    return request_of(RunSettings(**settings), command or ("true",), HERE, script)


def job(*command: str, **settings: Any) -> Manifest:
    return job_manifest(request(*command, **settings), "team")


def slurm(*lines: str) -> SlurmRequest:
    """What lines of options ask for."""
    text = "\n".join(["#!/bin/sh", *(f"#SBATCH {line}" for line in lines), "true"])
    return slurm_request(read_comments(text, "job.sh").sbatch)


def slurm_job(*lines: str) -> Manifest:
    return job_manifest(request_of(slurm(*lines).settings, (), HERE, "#!/bin/sh\ntrue\n"), "team")


def pod_spec(manifest: Manifest, task: int = 0) -> Manifest:
    spec: Manifest = manifest["spec"]["tasks"][task]["template"]["spec"]
    return spec


def container(manifest: Manifest, task: int = 0) -> Manifest:
    first: Manifest = pod_spec(manifest, task)["containers"][0]
    return first


def variables(manifest: Manifest, task: int = 0) -> dict[str, str]:
    """Those with a value of their own."""
    return {each["name"]: each["value"] for each in container(manifest, task)["env"] if "value" in each}
