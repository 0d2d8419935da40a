"""A cluster on one machine: an API server on SQLite that kubectl can use, and nodes that run or pretend to run.

`store` keeps encoded objects and their history, `watching` hands changes on, `registry` knows the kinds, `objects` is
what one may do with them, `lifecycle` what happens to them by themselves, `server` speaks HTTP. What objects look like
(`schemas`, `patching`), how they are listed (`tables`) and who may do what (`rights`) are pure functions beside it.
Nodes, the scheduler and everything else speak to the server as they would to a real one: over its API alone.
"""
