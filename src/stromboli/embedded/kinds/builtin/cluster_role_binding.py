"""ClusterRoleBindings."""

from stromboli.embedded.kinds.builtin.role_binding import STRATEGY
from stromboli.embedded.kinds.kind import CLUSTER, builtin

KIND = builtin(
    "rbac.authorization.k8s.io",
    "clusterrolebindings",
    "ClusterRoleBinding",
    strategy=STRATEGY,
    **CLUSTER,
)
