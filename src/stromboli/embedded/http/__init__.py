"""The HTTP side of the embedded API server: who asks, what is asked, how it is answered."""
