"""Kubernetes' own workloads as pure functions: from an owner and an ordinal to the manifest of a pod.

`workload` is what is read of an owner, `workload_pods` makes pods of it. Nothing here reads a cluster or writes to one.
"""
