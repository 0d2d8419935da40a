"""The plugins, a file or package each, named as in the configuration. Plugins never import plugins."""
