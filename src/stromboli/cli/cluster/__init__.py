"""What commands that talk to a running cluster share: options, the session, requests, output, completion."""
