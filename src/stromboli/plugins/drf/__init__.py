"""The plugin `drf`: dominant resource fairness between jobs, flat or along a hierarchy of queues (spec 03 4, 5).

`plugin` decides; `tree` is the hierarchy with what each branch of it holds.
"""
