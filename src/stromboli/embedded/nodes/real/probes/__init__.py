"""Probes and lifecycle hooks of containers on real nodes.

`container_health` has Kubernetes' rules as a pure state machine; `prober` runs the probes of a running container;
`probe_handlers` is what both probes and hooks do: a command, an HTTP request, a connection, a gRPC health check.
"""
