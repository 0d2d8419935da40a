"""What pods on real nodes have of this machine: GPUs, and cgroups that hold CPU and memory to their limits."""
