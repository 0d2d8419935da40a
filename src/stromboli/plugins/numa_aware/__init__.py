"""The plugin `numa-aware`: CPUs of as few NUMA nodes as possible for Guaranteed pods (spec 04 7).

`plugin` decides; `numa_hints` finds the NUMA nodes for a container, `cpu_assignment` the CPUs for a pod on one node,
and `node_verdicts` keeps that for all nodes.
"""
