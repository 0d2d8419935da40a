"""Node usage: `usage_sources` reads it, `usage_feed` polls a source between cycles.

A source may be unreachable, slow or wrong. It never delays a cycle, and the last valid measurements are used until they
are too old (`model.node_usage.FRESH`).
"""
