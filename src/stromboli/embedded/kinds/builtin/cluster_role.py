"""ClusterRoles."""

from stromboli.embedded.kinds.builtin.role import RoleStrategy
from stromboli.embedded.kinds.kind import CLUSTER, builtin

KIND = builtin("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", strategy=RoleStrategy(), **CLUSTER)
