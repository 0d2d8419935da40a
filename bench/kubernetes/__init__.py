"""Measures the whole scheduler on a real API server, with kube-scheduler in turn on the same.

`python -m bench kubernetes` (or `make bench-kubernetes`). Every measurement has a control plane of its own, fresh, on
loopback (`grounds.py`). What happened, and when, is read from the API server's audit log (`audit.py`), so nobody has to
watch and slow it down; what it cost, from `/proc` (`processes.py`).
"""
