"""Room by moving: a gang that does not fit gets room, and whoever leaves it has another place in the same cycle."""
