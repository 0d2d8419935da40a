"""Sources of node usage: one file per kind of source, and the feed that polls one between cycles.

A source may be down, slow or wrong: it never delays a cycle, and the last good measurements stay until they are too
old to be believed (`model.node_usage.FRESH`).
"""
