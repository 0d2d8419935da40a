"""Plugins and arguments for tests in which pods have to be evicted."""

STOCK = "priority gang conformance | predicates nodeorder"
SHARES = "priority gang conformance | predicates proportion nodeorder"
LOOSE = "priority conformance | predicates nodeorder"
"""Without gang, so that no gang protects its members."""
GENTLE = {"fewestVictims": True, "doNoHarm": True, "holdFor": "5m", "minRunTime": "0s"}
