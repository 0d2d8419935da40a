"""What `kubectl get` prints: columns per kind, as a Kubernetes API server prints them. Pure functions of objects.

`builtin_printers` and `crd_printers` have the printers of kinds, `table` makes a `Table` with one.
"""
