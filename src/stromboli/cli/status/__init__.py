"""`stromboli status`: what a cluster has, and who uses it.

`cluster_status` reads the API server, `resource_usage` asks the model and the policy, `status_text` prints,
`status_command` is the command.
"""
