"""Job plugins: what a framework needs in the pods of a job and beside them; named as in `spec.plugins`."""
