"""A cluster as watches keep it up to date: for `stromboli top` and the dashboard.

`record_watches` has a reflector for each kind, `cluster_records` keeps the fields that are shown and sums of them,
`shares_by_policy` asks the policy what queues deserve, `cluster_content` is a moment of it as plain data.
"""
