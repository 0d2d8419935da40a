"""What exists: dimensions, tasks, jobs, queues, node columns and the cluster that holds them.

State changes in one way, `Cluster.move`. No decisions are taken here, and nothing talks to the outside world.
"""
