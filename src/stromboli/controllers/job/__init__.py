"""Volcano's Job: a pure core that says what a job should become, and the writing around it.

`look.py` is one look at a job: a `Scene` in, an `Outcome` out. `phases.py` is the state table, `policies.py` says which
action an event asks for, `signals.py` which events the cluster shows. What a job is made of: `pods.py`, `group.py`,
`volumes.py`, and `plugins/` for whatever frameworks need around them. `controller.py` carries outcomes out.
"""
