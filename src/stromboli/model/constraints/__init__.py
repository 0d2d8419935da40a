"""What pods require of nodes and of other pods: selectors, taints, affinity, topology spread."""
