"""Ingresses, which are stored and not served."""

from stromboli.embedded.kinds.kind import STATUS, builtin
from stromboli.embedded.kinds.strategy import Strategy

_WARNING = (
    "no ingress controller runs here, and nothing is routed to Services: `kubectl port-forward service/NAME PORT`"
    " reaches a pod on a real node"
)
KIND = builtin(
    "networking.k8s.io",
    "ingresses",
    "Ingress",
    "ing",
    STATUS,
    strategy=Strategy(has_generation=True, creation_warnings=lambda content: (_WARNING,)),
)
