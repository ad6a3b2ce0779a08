"""Serves a folder on a free port of this machine."""

import functools
import http.server
import sys

handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
