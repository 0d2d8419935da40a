"""What pods ask of nodes and of other pods: selectors, taints, affinity, topology spread."""
