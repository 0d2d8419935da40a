"""Who waits for whom: jobs for other jobs, and tasks for other tasks of their job."""
