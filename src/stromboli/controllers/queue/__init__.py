"""Queues are open, closing or closed: by command, by their PodGroups and with their parent; `queue_states` decides."""
