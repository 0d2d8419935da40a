"""`stromboli explain`: a job, a pod, a queue or a node in full, and what would let a job start, tried by cycles."""
