"""Commands for kinds that are shown, created and deleted alike: flows, templates, cron jobs, PodGroups, HyperNodes.

`kind_commands` has the verbs that they share, each from a table of columns; the other files have what a kind has of
its own.
"""
