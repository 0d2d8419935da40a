"""Jobs and whole cycles that are skipped, as another attempt could only have the same result."""
