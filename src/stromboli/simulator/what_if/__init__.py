"""What if this were submitted now: two runs from the same present, without it and with it, and how they differ.

`submitted_objects` prepares what is submitted as an API server would, `present_cluster` loads the cluster with and
without it, `future_run` lets virtual time pass by the real scheduler, `run_differences` compares the records, and
`what_if_answer` puts it all together.
"""
