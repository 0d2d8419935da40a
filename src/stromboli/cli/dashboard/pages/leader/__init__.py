"""What the leader tells: its last cycles with their decisions, and the policy in force."""
