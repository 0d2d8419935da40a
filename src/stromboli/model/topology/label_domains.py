"""Domains by a label of nodes: the nodes that share a value of it, as the topology of a native group asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.topology.domain import Domain
from stromboli.model.topology.domain_sums import DomainSums

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.model.node_columns import Columns

LABEL_TIER = -1
"""The tier of the domains of a label: below those of HyperNodes, which are not made of them."""


class LabelDomains:
    """The domains of a label and what they hold; valid until the object of a node changes."""

    def __init__(self, domains: Mapping[str, Domain], columns: Columns):
        self.by_value = domains
        """The domains by the value of the label, in the order of their first nodes."""
        self.sums = DomainSums(list(domains.values()), columns)


def label_domains(columns: Columns, key: str) -> LabelDomains:
    """The domains of a label; nodes without it are in none.

    They are made when first asked for, and again when the object of a node has changed.
    """
    known = columns.derived(_by_key)
    if key not in columns.derived(_label_keys):
        return LabelDomains({}, columns)  # users choose the key: what no node has is not kept
    if key not in known:
        known[key] = LabelDomains(_domains(columns, key), columns)
    return known[key]


def _by_key(_columns: Columns) -> dict[str, LabelDomains]:
    """The domains of each label that was asked for."""
    return {}


def _label_keys(columns: Columns) -> set[str]:
    return {key for node in columns.nodes for key in node.labels}


def _domains(columns: Columns, key: str) -> dict[str, Domain]:
    codes, values = columns.label_codes(key)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(values) + 1))
    return {
        value: Domain(f"{key}={value}", LABEL_TIER, rows=order[bounds[code] : bounds[code + 1]])
        for value, code in values.items()
    }
