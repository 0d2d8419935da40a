"""`stromboli explain`: why a job waits or where it runs, what a queue has, what a node holds.

`explain_command` is the command, `file_explanation` and `live_explanation` read a cluster, `explanation_text` prints.
"""
