"""`stromboli workload`: look at workloads, and save them in formats that others can read."""
