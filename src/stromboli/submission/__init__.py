"""From a command or a script with its options to the manifest of a Volcano Job. Knows neither cluster nor terminal."""
