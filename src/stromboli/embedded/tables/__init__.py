"""What `kubectl get` prints: columns per kind, as a Kubernetes API server prints them. Pure functions of objects.

Built-in kinds have their printers (`kinds/builtin`), `crd_printers` makes those of others, and `table` makes a `Table`
with one.
"""
