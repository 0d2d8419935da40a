"""The nodes that reach a volume: by its node affinity, and by the zones that its labels name.

Volumes of the plugins that Kubernetes once had in its own tree are translated to the CSI drivers that replaced them. An
annotation of a node's CSINode lists the plugins that it leaves to their drivers (spec 04 2.7, 2.11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_node_term, valid_node_term
from stromboli.api.types.pod import NodeSelectorTerm
from stromboli.model.constraints.node_selection import matching_term

if TYPE_CHECKING:
    from stromboli.api.types.meta import Requirement
    from stromboli.api.types.node import CSINode
    from stromboli.api.types.pod import Disk, NodeSelector, Volume
    from stromboli.api.types.storage import PersistentVolume, PersistentVolumeSpec
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Bools, Columns, Ints


# -- volumes of in-tree plugins as those of CSI drivers


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
        """Its identifier among volumes of its driver."""
        return self.disk.volume_id or self.disk.pd_name or self.disk.disk_uri


def in_tree_volume(source: PersistentVolumeSpec | Volume) -> InTreeVolume | None:
    """A PersistentVolume or a volume of a pod as a volume of such a plugin; none if it is not one."""
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


# -- the nodes of a volume


_ZONE_LABELS = {
    names.OLD_ZONE: names.ZONE,
    names.OLD_REGION: names.REGION,
    names.ZONE: names.ZONE,
    names.REGION: names.REGION,
}
"""The labels of a volume for its location, each with the current label of the same meaning."""


_NO_ROWS: Ints = np.zeros(0, dtype=np.int64)


def is_restricted(volume: PersistentVolume) -> bool:
    """Whether a volume cannot be reached from every node."""
    return has_affinity(volume) or bool(zones_of(volume))


def has_affinity(volume: PersistentVolume) -> bool:
    """Whether a volume has a node affinity that restricts the nodes that reach it."""
    return _affinity(volume) is not None


def nodes_with_affinity(columns: Columns, objects: LookupObjects, volume: PersistentVolume) -> Bools:
    """Nodes from which a volume can be reached by its node affinity."""
    required = _affinity(volume)
    if required is None:
        return np.ones(len(columns), dtype=bool)
    matching = _matching(columns, required)
    in_tree = in_tree_volume(volume.spec)
    if in_tree is not None and in_tree.plugin.zone_label:
        translated = _matching(columns, translated_affinity(required, in_tree.plugin))
        migrated = nodes_that_migrated(columns, objects, in_tree.plugin)
        return np.where(migrated, translated, matching)
    return matching


def nodes_that_migrated(columns: Columns, objects: LookupObjects, plugin: InTreePlugin) -> Bools:
    """Nodes that leave the volumes of an in-tree plugin to its CSI driver."""
    storage_nodes = objects.storage_nodes
    return np.fromiter(
        (plugin.name in migrated_plugins(storage_nodes.get(node.name)) for node in columns.nodes),
        dtype=bool,
        count=len(columns),
    )


def rows_with_affinity(columns: Columns, volume: PersistentVolume) -> Ints | None:
    """The rows of the nodes from which a volume can be reached by its node affinity; none: all.

    Most volumes with an affinity are local to a node that a label names: then not all nodes are checked.
    """
    required = _affinity(volume)
    if required is None:
        return None
    key, values = _label_of_one_term(required)
    return rows_with_label(columns, key, values) if key else np.flatnonzero(_matching(columns, required))


def rows_with_label(columns: Columns, key: str, values: tuple[str, ...]) -> Ints:
    """The rows of the nodes whose label has one of these values."""
    by_value = columns.derived(_LabelRows).of(key)
    if len(values) == 1:
        return by_value.get(values[0], _NO_ROWS)
    rows = [by_value[value] for value in dict.fromkeys(values) if value in by_value]
    return np.sort(np.concatenate(rows)) if rows else _NO_ROWS


def nodes_in_zones(columns: Columns, objects: LookupObjects, volume: PersistentVolume) -> Bools:
    """Nodes in the zones and regions that a volume's labels name; a node that names none is included."""
    unnamed = np.ones(len(columns), dtype=bool)
    for label in _ZONE_LABELS:
        unnamed &= columns.label_codes(label)[0] < 0
    matching = np.ones(len(columns), dtype=bool)
    for label, zones in zones_of(volume).items():
        named = columns.label_codes(label)[0] >= 0
        matching &= np.where(named, _has(columns, label, zones), _has(columns, _ZONE_LABELS[label], zones))
    return matching | unnamed


def _has(columns: Columns, label: str, values: list[str]) -> Bools:
    """Nodes whose label has one of these values."""
    codes, known = columns.label_codes(label)
    return np.isin(codes, [known[value] for value in values if value in known])


class _LabelRows:
    """The rows of nodes by the value of a label, for labels that were used."""

    def __init__(self, columns: Columns):
        self._columns = columns
        self._by_key: dict[str, dict[str, Ints]] = {}

    def of(self, key: str) -> dict[str, Ints]:
        known = self._by_key.get(key)
        if known is None:
            codes, values = self._columns.label_codes(key)
            order = np.argsort(codes, kind="stable")
            ends = np.searchsorted(codes[order], np.arange(len(values) + 1))
            known = self._by_key[key] = {
                value: order[ends[code] : ends[code + 1]] for value, code in values.items()
            }
        return known


def _matching(columns: Columns, selector: NodeSelector) -> Bools:
    """Nodes whose labels match a term; # quirk: spec 04 2.10, fields are compared with a node that has none."""
    matching = np.zeros(len(columns), dtype=bool)
    for term in selector.node_selector_terms:
        if not term.match_fields:
            matching |= matching_term(columns, term)
        elif valid_node_term(term) and matches_node_term(NodeSelectorTerm((), term.match_fields), {}, ""):
            labels = NodeSelectorTerm(term.match_expressions)
            matching |= matching_term(columns, labels) if term.match_expressions else True
    return matching


def _label_of_one_term(selector: NodeSelector) -> tuple[str, tuple[str, ...]]:
    """The label and its values, if a selector consists of only that; else no label."""
    if len(selector.node_selector_terms) == 1:
        term = selector.node_selector_terms[0]
        if len(term.match_expressions) == 1 and not term.match_fields:
            requirement = term.match_expressions[0]
            if requirement.operator == "In" and requirement.values:
                return requirement.key, requirement.values
    return "", ()


def _affinity(volume: PersistentVolume) -> NodeSelector | None:
    return volume.spec.node_affinity.required if volume.spec.node_affinity else None


def zones_of(volume: PersistentVolume) -> dict[str, list[str]]:
    """The values of its labels for zones and regions; each label may list several."""
    labels = volume.metadata.labels
    listed = {label: labels[label].split("__") for label in _ZONE_LABELS if label in labels}
    return {label: zones for label, zones in listed.items() if all(zones)}
