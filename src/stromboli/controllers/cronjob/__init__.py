"""CronJobs: `times` says when a job is due, `look` what is to be done about it, `controller` does it."""
