"""`stromboli explain`: what the engine says of a job, and what would let it start, tried on the loaded cluster."""
