"""Which domains of a label a native group may use, whose pods must share a value of it.

Kubernetes honours this in its core, so it takes no plugin here either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.model.job import SubJob
from stromboli.model.topology.domain import label_domains

if TYPE_CHECKING:
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Columns, Node
    from stromboli.model.topology.domain import Domain


def label_key(unit: Job | SubJob) -> str:
    """The label whose value all nodes of a job, or of a part of it, must share; empty if it asks for none."""
    job = unit.job if isinstance(unit, SubJob) else unit
    return job.native.topology_key if job.native is not None else ""


def possible_label_domains(columns: Columns, key: str, nodes: Sequence[Node]) -> list[Domain]:
    """The domains that have all nodes on which a group is; none if these are in several, or all lost."""
    domains = label_domains(columns, key).by_value
    if not nodes:
        return list(domains.values())
    values = {node.labels.get(key) for node in nodes if node.row >= 0}
    return [domain for value, domain in domains.items() if values == {value}]
