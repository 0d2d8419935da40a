"""The cards of nodes (GPUs, NPUs) that several pods share, and the shares that tasks hold."""
