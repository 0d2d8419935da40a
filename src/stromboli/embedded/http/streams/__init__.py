"""Streams between a client and a pod: `kubectl exec`, `attach`, `cp` and `port-forward`.

Frames are pure functions and classes without I/O: messages of channels in a WebSocket (`channel_frames`), SPDY/3.1
(`spdy_frames`, `spdy_headers`). Connections carry them, and what is served knows only channels or SPDY streams.
"""
