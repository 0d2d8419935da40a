"""The CPUs of nodes by number, with their NUMA node, socket and core, and the CPUs granted to tasks."""
