"""Nodes without machines: *simulated* ones only report statuses, *real* ones run pods as local processes.

They know the cluster through its API alone, as kubelets do, so they work against any API server. A node is ours if it
has the label `stromboli.sh/node`. The next stage of a pod is a pure function of the pod (`pod_stages`), and so are its
statuses (`pod_status_patches`); `node_service` watches, waits and writes.
"""
