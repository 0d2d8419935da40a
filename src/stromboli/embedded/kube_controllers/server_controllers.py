"""The API server's own controllers, and what they are given."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from stromboli.controllers.recorder import Recorder
from stromboli.embedded.kube_controllers.controller import ServerContext, StoreController, write_event
from stromboli.embedded.kube_controllers.controller_loop import ControllerLoop
from stromboli.embedded.kube_controllers.definition_controller import DefinitionController
from stromboli.embedded.kube_controllers.garbage_collection import GarbageCollector
from stromboli.embedded.kube_controllers.namespace_controller import NamespaceController
from stromboli.embedded.kube_controllers.pod_garbage_collection import PodGarbageCollector
from stromboli.embedded.kube_controllers.pod_group_protection import PodGroupProtection
from stromboli.embedded.kube_controllers.resource_claims import ResourceClaimController
from stromboli.embedded.kube_controllers.services.endpoints_controller import EndpointsController
from stromboli.embedded.kube_controllers.status_controllers import DisruptionController, QuotaController
from stromboli.embedded.kube_controllers.volumes.ephemeral_volumes import EphemeralVolumeController
from stromboli.embedded.kube_controllers.volumes.persistent_volumes import PersistentVolumeController
from stromboli.embedded.kube_controllers.volumes.volume_protection import VolumeProtection
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.kube.event_recorder import EventRecorder

SERVER_CONTROLLERS: tuple[type[StoreController], ...] = (
    GarbageCollector,
    NamespaceController,
    DefinitionController,
    PodGarbageCollector,
    PodGroupProtection,
    VolumeProtection,
    ResourceClaimController,
    PersistentVolumeController,
    EphemeralVolumeController,
    QuotaController,
    DisruptionController,
    EndpointsController,
)


def controller_loop(objects: Objects, data: Path, ca: str) -> ControllerLoop:
    """All controllers on the objects of a server with that data folder and CA bundle."""
    component = StoreController.component
    recorder = Recorder(partial(write_event, objects), EventRecorder(component, component, time.time))
    context = ServerContext(objects, recorder, data, ca)
    return ControllerLoop(objects.store, recorder, [kind(context) for kind in SERVER_CONTROLLERS])
