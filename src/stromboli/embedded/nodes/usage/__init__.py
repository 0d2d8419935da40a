"""What nodes and pods use: measured on real nodes when somebody asks, plausible on simulated ones."""
