"""What `kubectl get` prints: columns per kind, as a Kubernetes API server prints them. Pure functions of objects.

`printer_for` finds the printer of a built-in kind, `crd_printer` makes one for a custom kind, `table` prints with it.
"""
