"""Measures the scheduler: whole cycles on named workloads, a naive peer on the same work, and how cost grows.

`python -m bench` (or `make bench`) runs everything; docs/performance.md explains what the numbers mean. Nothing in the
package `stromboli` knows of this one.
"""
