"""What exists: resources, tasks, jobs, queues, nodes as columns, and the one cluster that moves them.

The model knows neither plugins nor actions, reads no clock and does no I/O. Everything that changes a number goes
through `Cluster.move` (a task changes status or node) or `Cluster.replace` and its siblings (an object changed).
"""
