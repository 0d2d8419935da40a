"""All that a release consists of, made and checked by one command: `python -m deploy.release`, or `make release`."""
