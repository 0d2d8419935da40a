"""Kubernetes' own workloads: their pods as pure functions, and the controllers that make them on an embedded cluster.

`workload` is what is read of an owner, `workload_pods` makes pods of it, also for `stromboli plan`. A controller is a
package per kind, a pure `reconcile` and a thin `controller`, on `workload_controller` and `dependents`.
"""
