"""The cards of nodes (GPUs, NPUs) that several pods share: what there is, what each task holds of it."""
