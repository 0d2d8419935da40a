"""Objects from YAML and JSON files, checked and completed as an API server would."""
