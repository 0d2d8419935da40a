"""The CPUs of nodes by number: which NUMA node, socket and core each belongs to, and which task was given which."""
