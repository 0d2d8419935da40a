"""What pages read from the API server with the rights of the viewer: bounded, and kept for a moment."""
