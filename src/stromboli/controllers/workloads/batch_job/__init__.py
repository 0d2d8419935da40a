"""Jobs of `batch/v1`: `reconcile` decides in pure steps, `controller` writes; not Volcano's Jobs (`controllers/job`).

A pod has a finalizer until its end is in the job's status, so no end is lost or counted twice: `job_tracking`.
"""
