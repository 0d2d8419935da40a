"""What the pages of jobs, PodGroups and pods are made of: timelines, explanations, events, logs, manifests."""
