"""The plugin `drf`: dominant resource fairness between jobs, flat or along a hierarchy of queues (spec 03 4, 5).

`plugin` decides; `job_tree` is the hierarchy with what each part of it holds.
"""
