"""`stromboli up`, `down` and `node`: a cluster on this machine, with nothing but Python."""
