"""Reports: what the record of a simulation says, as measures, files, pages and comparisons."""
