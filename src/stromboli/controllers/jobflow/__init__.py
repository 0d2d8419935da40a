"""JobFlows: `look` says which jobs are due and how far the flow is, `jobs` what they look like, `probing` asks pods."""
