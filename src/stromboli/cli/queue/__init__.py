"""`stromboli queue`: create, list, draw, change, open, close and delete queues."""
