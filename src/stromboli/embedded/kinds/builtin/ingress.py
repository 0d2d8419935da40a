"""Ingresses, which are stored and not served."""

from stromboli.embedded.kinds.kind import STATUS, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy


class IngressStrategy(Strategy):
    has_generation = True

    def creation_warnings(self, content: Content) -> tuple[str, ...]:
        return (
            "no ingress controller runs here, and nothing is routed to Services: `kubectl"
            " port-forward service/NAME PORT` reaches a pod on a real node",
        )


KIND = builtin("networking.k8s.io", "ingresses", "Ingress", "ing", STATUS, strategy=IngressStrategy())
