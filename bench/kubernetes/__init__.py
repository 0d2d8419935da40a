"""Measures the whole scheduler on a real API server, with kube-scheduler in turn on the same.

`python -m bench kubernetes` (or `make bench-kubernetes`). Every measurement has a fresh control plane of its own
(`bench_cluster.py`). What happened, and when, is read from the API server's audit log (`audit.py`), so that no watch
slows it down; what it cost, from `/proc` (`processes.py`).
"""
