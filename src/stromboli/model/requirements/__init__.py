"""What pods, PodGroups and queues ask of their placement that takes a plugin to honour."""
