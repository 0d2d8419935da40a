"""The HTTP server of the dashboard: who is let in, what responses say, and how pages are kept live."""
