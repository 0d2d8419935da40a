"""JobFlows: `reconcile` decides which jobs are due, `flow_jobs` builds them, `probes` checks the jobs before them."""
