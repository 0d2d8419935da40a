"""ClusterRoles."""

from stromboli.embedded.kinds.kind import CLUSTER, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import CREATION_TIMES

KIND = builtin(
    "rbac.authorization.k8s.io",
    "clusterroles",
    "ClusterRole",
    strategy=Strategy(printer=CREATION_TIMES),
    **CLUSTER,
)
