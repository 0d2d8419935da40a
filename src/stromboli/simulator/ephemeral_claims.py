"""Claims of ephemeral volumes, which a controller of the cluster makes once their pod exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api.manifests.object_defaults import default_storage_class
from stromboli.api.types.meta import ObjectMeta, OwnerReference
from stromboli.api.types.pod import ClaimTemplateSpec, Resources
from stromboli.api.types.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.intake.object_intake import Intake
    from stromboli.model.task import Task


def make_ephemeral_claims(intake: Intake) -> None:
    """Pending pods get the claims of their ephemeral volumes."""
    cluster = intake.cluster
    for job in list(cluster.backlog):
        for task in list(job.by_status[Status.PENDING]):
            if any(claim.ephemeral for claim in task.volume_claims):
                _make_claims(intake, task)


def _make_claims(intake: Intake, task: Task) -> None:
    for volume in task.shape.spec.volumes:
        template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
        name = f"{task.name}-{volume.name}"
        if template is not None and f"{task.namespace}/{name}" not in intake.cluster.objects.claims:
            intake.put(_claim(intake, task, name, template.spec))


def _claim(intake: Intake, task: Task, name: str, template: ClaimTemplateSpec) -> PersistentVolumeClaim:
    owner = OwnerReference("v1", "Pod", task.name, task.uid, True)
    uid = f"PersistentVolumeClaim/{task.namespace}/{name}"
    chosen = template.storage_class_name
    if chosen is None:
        chosen = default_storage_class(intake.cluster.objects.storage_classes.values())
    return PersistentVolumeClaim(
        ObjectMeta(name, task.namespace, uid, owner_references=(owner,)),
        PersistentVolumeClaimSpec(
            access_modes=template.access_modes,
            resources=template.resources or Resources(),
            storage_class_name=chosen,
            volume_mode=template.volume_mode,
        ),
    )
