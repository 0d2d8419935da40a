"""Asks `/readyz` ten times a second over one connection: `python ready_probe.py HOST PORT CA_FILE`.

Prints for each when it was sent and when it was answered, by the steady clock, and whether the answer was `ok`.
"""

import http.client
import os
import ssl
import sys
import time

INTERVAL = 0.1
TIMEOUT = 30.0


def main(host: str, port: str, authority: str) -> None:
    context = ssl.create_default_context(cafile=authority)
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=TIMEOUT)
    parent = os.getppid()
    while os.getppid() == parent:
        begin = time.monotonic()
        try:
            connection.request("GET", "/readyz")
            text = connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            text = "none"
            connection.close()
        print(f"{begin:.4f} {time.monotonic():.4f} {text}", flush=True)
        time.sleep(INTERVAL)


if __name__ == "__main__":
    main(*sys.argv[1:])
