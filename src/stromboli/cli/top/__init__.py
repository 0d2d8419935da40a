"""`stromboli top`: a cluster live, like htop.

`frame_text` draws what `cli/live` has of it; `keyboard` and `top_screen` are the terminal, `top_command` the command.
"""
