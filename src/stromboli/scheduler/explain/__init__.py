"""What the leader reports on request: why a job waits, its history, the last cycles, and the policy in force."""
