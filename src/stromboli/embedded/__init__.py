"""A cluster on one machine: an API server on SQLite that kubectl can use, and nodes that run or simulate pods.

The packages of the API server, each of which imports only those after it:

- `http`: requests and responses, and the server itself
- `kube_controllers`: what a kube-controller-manager would do, such as garbage collection
- `objects`: the verbs on objects and subresources
- `admission`: the admission chain
- `auth`: users, certificates, authorization
- `store`: versions of objects, and watches
- `kinds`: kinds, their strategies, and the errors of their requests
- `schemas`, `patching`, `tables`, `rbac`, `protobuf`: pure functions of objects

Nodes, the scheduler and everything else speak to the server as they would to a real one: over its API alone.
"""
