"""Role-based access control: roles and bindings as Kubernetes' RBAC authorizer reads them. Pure, no I/O.

`authorizer` decides requests by roles and bindings; `access_reviews` completes the reviews of `kubectl auth can-i`;
`bootstrap_roles` has the roles and bindings that a cluster starts with.
"""
