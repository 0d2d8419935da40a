"""`stromboli top`: a cluster live, like htop.

`cluster_records` keeps what watches bring, in sums; `shares_by_policy` asks the policy what queues deserve;
`top_content` is a snapshot as plain data; `frame_text` draws it; `keyboard` and `top_screen` are the terminal,
`top_command` the command.
"""
