"""Volcano's Job: a pure core that decides what a job needs, and the controller that executes it.

`reconcile` is that core: an `ObservedState` in, an `Outcome` out. `job_phases` is the state table, `lifecycle_policies`
says which action an event leads to, `observed_events` which events the cluster shows. What a job consists of is in
`job_pods`, `job_pod_group`, `job_volumes` and `plugins/`. `controller` and `executor` do the rest.
"""
