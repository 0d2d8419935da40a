"""ReplicaSets."""

from stromboli.embedded.kinds.kind import IN_ALL, SCALE, STATUS, builtin
from stromboli.embedded.kinds.pod_owners import REPLICAS, SelectingStrategy


class ReplicaSetStrategy(SelectingStrategy):
    kind_name = "ReplicaSet"
    printer = REPLICAS


KIND = builtin(
    "apps", "replicasets", "ReplicaSet", "rs", SCALE, STATUS, strategy=ReplicaSetStrategy(), **IN_ALL
)
