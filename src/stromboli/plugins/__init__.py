"""The built-in plugins, one file each, named as in the configuration file. Plugins never import plugins."""
