"""The shape of the network: HyperNodes as a tree of domains, each a set of nodes."""
