"""The policies, one file per plugin, named as in the configuration. Plugins never import plugins."""
