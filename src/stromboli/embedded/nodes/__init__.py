"""Nodes without machines: *simulated* ones pretend to run pods, *real* ones run their commands as local processes.

They know the cluster through its API alone, as kubelets do, so they work against any API server. A node is ours if it
carries the label `stromboli.sh/node`. What a pod should do next is a pure function of the pod (`plans.py`) and what
is told about it is too (`statuses.py`); `scheduler.py` watches, waits and writes.
"""
