"""Users and tokens, the cluster's certificate authority, and authorization by the stored RBAC objects."""
