"""`stromboli job`: submit, list, describe, read, suspend, resume, scale, delete and await Volcano Jobs."""
