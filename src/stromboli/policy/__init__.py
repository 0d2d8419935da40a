"""The policy: Volcano's configuration file, read strictly, with typed arguments of actions and plugins."""
