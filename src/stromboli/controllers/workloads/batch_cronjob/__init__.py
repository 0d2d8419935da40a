"""CronJobs of `batch/v1`, which start Jobs of `batch/v1`; Volcano's CronJobs are in `controllers/cronjob`."""
