"""The plugin `task-topology`: which roles of a job belong on one node, and which apart (spec 04 8).

`plugin` orders tasks and scores nodes; `role_affinities` reads the annotations of the PodGroup, and
`role_buckets` divides the tasks into buckets, each meant for one node.
"""
