"""All objects and their recent history, in memory and in SQLite, and the hub that feeds watches."""
