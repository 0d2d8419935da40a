"""Volumes of the plugins that Kubernetes once had in its own tree, as the CSI drivers that took over serve them.

A node says in an annotation of its CSINode which plugins it leaves to their drivers (spec 04 2.7, 2.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from stromboli.api import names

if TYPE_CHECKING:
    from stromboli.api.types.meta import Requirement
    from stromboli.api.types.node import CSINode
    from stromboli.api.types.pod import Disk, NodeSelector, Volume
    from stromboli.api.types.storage import PersistentVolumeSpec

_ZONES = (names.ZONE, names.OLD_ZONE)


class InTreePlugin(NamedTuple):
    """A plugin, the field of its volumes, its CSI driver, and the driver's label for zones."""

    name: str
    field: str
    driver: str
    zone_label: str = ""


PLUGINS = (
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "aws_elastic_block_store",
        "ebs.csi.aws.com",
        "topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "kubernetes.io/azure-disk", "azure_disk", "disk.csi.azure.com", "topology.disk.csi.azure.com/zone"
    ),
    InTreePlugin(
        "kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    InTreePlugin(
        "kubernetes.io/gce-pd", "gce_persistent_disk", "pd.csi.storage.gke.io", "topology.gke.io/zone"
    ),
    InTreePlugin("kubernetes.io/portworx-volume", "portworx_volume", "pxd.portworx.com"),
)
BY_NAME = {plugin.name: plugin for plugin in PLUGINS}


class InTreeVolume(NamedTuple):
    """A volume of such a plugin."""

    plugin: InTreePlugin
    disk: Disk

    @property
    def handle(self) -> str:
        """What tells it from other volumes of its driver."""
        return self.disk.volume_id or self.disk.pd_name or self.disk.disk_uri


def in_tree_volume(source: PersistentVolumeSpec | Volume) -> InTreeVolume | None:
    """The volume of such a plugin that a PersistentVolume or a volume of a pod is, if it is."""
    for plugin in PLUGINS:
        disk = getattr(source, plugin.field)
        if disk is not None:
            return InTreeVolume(plugin, disk)
    return None


def migrated_plugins(node: CSINode | None) -> frozenset[str]:
    """The plugins whose volumes a node leaves to their CSI drivers."""
    listed = node.metadata.annotations.get(names.MIGRATED_PLUGINS, "") if node is not None else ""
    return frozenset(listed.split(",")) if listed else frozenset()


def translated_affinity(selector: NodeSelector, plugin: InTreePlugin) -> NodeSelector:
    """The node affinity of a volume with the driver's label for zones."""
    if not plugin.zone_label:
        return selector
    terms = tuple(
        msgspec.structs.replace(
            term, match_expressions=tuple(_translated(each, plugin) for each in term.match_expressions)
        )
        for term in selector.node_selector_terms
    )
    return msgspec.structs.replace(selector, node_selector_terms=terms)


def _translated(requirement: Requirement, plugin: InTreePlugin) -> Requirement:
    if requirement.key not in _ZONES:
        return requirement
    return msgspec.structs.replace(requirement, key=plugin.zone_label)
