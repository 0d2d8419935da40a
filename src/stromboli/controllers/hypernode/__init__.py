"""HyperNodes are discovered from labels of nodes and from UFM, kept as discovered, and their nodes counted."""
