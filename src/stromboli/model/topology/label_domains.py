"""Domains by a label of nodes: the nodes that share a value of it, as the topology of a native group asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.topology.domain import Domain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.model.node_columns import Columns

Domains = dict[str, Domain]
_NONE: Domains = {}


def label_domains(columns: Columns, key: str) -> Mapping[str, Domain]:
    """The domains of a label by its value, in the order of their first nodes; nodes without the label are in none.

    They are made when first asked for, and again when the object of a node has changed.
    """
    known = columns.derived(_by_key)
    if key not in columns.derived(_label_keys):
        return _NONE  # users choose the key: what no node has is not kept
    if key not in known:
        known[key] = _domains(columns, key)
    return known[key]


def _by_key(_columns: Columns) -> dict[str, Domains]:
    """The domains of each label that was asked for."""
    return {}


def _label_keys(columns: Columns) -> set[str]:
    return {key for node in columns.nodes for key in node.labels}


def _domains(columns: Columns, key: str) -> Domains:
    codes, values = columns.label_codes(key)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(values) + 1))
    return {
        value: Domain(f"{key}={value}", 1, rows=order[bounds[code] : bounds[code + 1]])
        for value, code in values.items()
    }
