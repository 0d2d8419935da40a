"""The plugin `extender`: asks an HTTP server of the user (`plugin`), with what messages, through which client."""
