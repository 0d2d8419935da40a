"""The one-machine cluster: an API server on SQLite that kubectl can use, and nodes that run or pretend to run.

Nodes, the scheduler and everything else speak to the server as they would to a real one: over its API alone.
"""
