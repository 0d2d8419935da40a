"""What Kubernetes refuses in Jobs and CronJobs of `batch/v1` beyond fields and their types."""
