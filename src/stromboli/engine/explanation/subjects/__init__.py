"""What a user asks about (a job, a pod, a queue, a node) explained in full, as plain data with a stable JSON form."""
