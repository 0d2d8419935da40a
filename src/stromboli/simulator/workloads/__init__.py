"""What is submitted in virtual time: traces, generated workloads and dumps, read and written."""
