"""What pods, PodGroups and queues require of their placement and only a plugin can honour."""
