"""CronJobs: `schedule_times` says when a job is due, `reconcile` decides, `controller` writes."""
