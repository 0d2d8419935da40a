"""The plugin `fgd`: put a task where it leaves the fewest free GPUs that typical tasks cannot use."""
