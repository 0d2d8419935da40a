"""The report of a run as one page: charts drawn as SVG and tables, without scripts and without anything to fetch."""
