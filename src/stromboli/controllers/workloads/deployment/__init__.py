"""Deployment: a ReplicaSet for each template, and the rollout from the old ones to the new one."""
