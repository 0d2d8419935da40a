"""ReplicaSet and ReplicationController: as many pods of a template as wanted."""
