"""Pages as functions of what is asked for: a module for each part of the cluster."""
