"""JobFlows: `reconcile` decides which jobs are due, `flow_jobs` builds them, `probes` asks the pods before them."""
