"""A webhook on this machine, for the walks that register one."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: The token that a walk registers and expects in each delivery.
TOKEN = "interop-token"
#: The time limit of a delivery, in seconds.
LIMIT = 20


class Webhook:
    """A context manager that accepts push deliveries at `url`."""

    def __enter__(self) -> "Webhook":
        self.received: list[tuple[dict, dict]] = []
        self._changed = threading.Condition()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with hook._changed:
                    hook.received.append((dict(self.headers.items()), json.loads(body)))
                    hook._changed.notify_all()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def until_completed(self) -> list[dict]:
        """The bodies, once one of them shows the end of the task."""
        with self._changed:
            over = self._changed.wait_for(lambda: any(map(completed, self.bodies())), LIMIT)
            if not over:
                raise AssertionError(f"no push delivery shows the end: {self.bodies()}")
            for headers, _ in self.received:
                lower = {name.lower(): value for name, value in headers.items()}
                if lower.get("x-a2a-notification-token") != TOKEN:
                    raise AssertionError(f"a delivery without its token: {sorted(lower)}")
                if "x-a2a-delivery-id" not in lower:
                    raise AssertionError(f"a delivery without an id: {sorted(lower)}")
            return self.bodies()

    def bodies(self) -> list[dict]:
        return [body for _, body in self.received]


def completed(body: dict) -> bool:
    """Whether a delivery shows a completed task, in any generation."""
    status = body.get("statusUpdate", body).get("status", {})
    return status.get("state") in ("TASK_STATE_COMPLETED", "completed")
