"""The volumes of a job (spec 06 2.11): claims that exist already, or that are created for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.job.job_pods import metadata_of, stable_suffix


class Volumes(NamedTuple):
    """What a job's volumes need: names to write into its spec, claims to create, and what is missing."""

    named: list[str] | None
    """The claim names of all volumes, if some were generated."""
    claims: list[Manifest]
    problem: str = ""


def volumes_of(job: Job, has_claim: Callable[[str], bool]) -> Volumes:
    """Names of generated claims follow from the job, so that each is created once."""
    claim_names = [
        volume.volume_claim_name or generated_claim_name(job, index)
        for index, volume in enumerate(job.spec.volumes)
    ]
    named = None if all(volume.volume_claim_name for volume in job.spec.volumes) else claim_names
    claims = []
    for index, volume in enumerate(job.spec.volumes):
        name = claim_names[index]
        if name == generated_claim_name(job, index):
            if volume.volume_claim is not None and not has_claim(name):
                claims.append(_claim(job, name, volume.volume_claim))
        elif not has_claim(name):
            return Volumes(named, [], names.JOB_CLAIM_NOT_FOUND.format(name=name))
    return Volumes(named, claims)


def controlled_claims(job: Job) -> dict[str, str]:
    """The claims in the status's `controlledResources`."""
    claims = [volume.volume_claim_name for volume in job.spec.volumes if volume.volume_claim_name]
    return {f"volume-pvc-{name}": name for name in claims}


def generated_claim_name(job: Job, index: int) -> str:
    return f"{job.name}-pvc-{stable_suffix(job.metadata.uid, str(index))}"


def _claim(job: Job, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata_of(job, name),
        "spec": spec,
    }
