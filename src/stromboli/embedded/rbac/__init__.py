"""Role-based access control: roles and bindings as Kubernetes' RBAC authorizer reads them. Pure, no I/O.

`authorizer` is given roles and bindings and decides requests; `access_reviews` answers what `kubectl auth can-i` asks;
`bootstrap_policy` returns the roles and bindings that a cluster starts with.
"""
