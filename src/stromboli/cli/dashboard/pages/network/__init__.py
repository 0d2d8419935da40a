"""Pages about nodes and about the network that they are in."""
