"""NetworkPolicies, which are stored and not enforced."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import cell_printer, nested_map, selector_text


class NetworkPolicyStrategy(Strategy):
    has_generation = True
    printer = cell_printer(
        "Name | Pod-Selector | Age",
        lambda policy: selector_text(nested_map(policy, "spec").get("podSelector")),
    )

    def set_defaults(self, content: Content) -> None:
        spec = content.get("spec") or {}
        if spec and not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def creation_warnings(self, content: Content) -> tuple[str, ...]:
        return (
            "nothing here enforces a NetworkPolicy: pods on real nodes use the network"
            " of this machine, and those on simulated nodes have none",
        )


KIND = builtin(
    "networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol", strategy=NetworkPolicyStrategy()
)
