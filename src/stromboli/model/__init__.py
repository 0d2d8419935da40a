"""The cluster as the scheduler sees it: resources, tasks, jobs, queues, and nodes as columns.

The model knows neither plugins nor actions, reads no clock and does no I/O. Everything that changes a number goes
through `Cluster.move` (a task changes status or node) or `intake` (an object changed).
"""
