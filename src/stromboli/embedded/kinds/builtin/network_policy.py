"""NetworkPolicies, which are stored and not enforced."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import cell_printer, nested_map, selector_text

_PRINTER = cell_printer(
    "Name | Pod-Selector | Age", lambda policy: selector_text(nested_map(policy, "spec").get("podSelector"))
)
_WARNING = (
    "nothing here enforces a NetworkPolicy: pods on real nodes use the network of this machine, and those on simulated"
    " nodes have none"
)


def _set_defaults(content: Content) -> None:
    spec = content.get("spec") or {}
    if spec and not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


KIND = builtin(
    "networking.k8s.io",
    "networkpolicies",
    "NetworkPolicy",
    "netpol",
    strategy=Strategy(
        has_generation=True,
        printer=_PRINTER,
        set_defaults=_set_defaults,
        creation_warnings=lambda content: (_WARNING,),
    ),
)
