"""The volumes of a job (spec 06 2.11): claims that exist already, or that are made for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.job.job_pods import letters, owner_of


class Volumes(NamedTuple):
    """What a job's volumes need: names to be written into its spec, claims to be made, and what is missing."""

    named: list[str] | None
    """The claim names of all volumes, if some had to be made up."""
    claims: list[Manifest]
    problem: str = ""


def volumes_of(job: Job, has_claim: Callable[[str], bool]) -> Volumes:
    """Claims to make get a name that follows from the job, so that however often we look, each is made once."""
    found = [volume.volume_claim_name or made_up(job, at) for at, volume in enumerate(job.spec.volumes)]
    named = None if all(volume.volume_claim_name for volume in job.spec.volumes) else found
    claims = []
    for at, volume in enumerate(job.spec.volumes):
        name = found[at]
        if name == made_up(job, at):
            if volume.volume_claim is not None and not has_claim(name):
                claims.append(_claim(job, name, volume.volume_claim))
        elif not has_claim(name):
            return Volumes(named, [], names.JOB_CLAIM_NOT_FOUND.format(name=name))
    return Volumes(named, claims)


def controlled_claims(job: Job) -> dict[str, str]:
    """What the status says of claims."""
    claims = [volume.volume_claim_name for volume in job.spec.volumes if volume.volume_claim_name]
    return {f"volume-pvc-{name}": name for name in claims}


def made_up(job: Job, at: int) -> str:
    return f"{job.name}-pvc-{letters(job.metadata.uid, str(at))}"


def _claim(job: Job, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": job.namespace, "ownerReferences": [owner_of(job)]},
        "spec": spec,
    }
