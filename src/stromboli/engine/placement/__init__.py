"""Where a task fits: filters and scores as functions of nodes, evaluated per shape of task, with reasons."""
