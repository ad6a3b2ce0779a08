"""The AWS Lambda Runtime API for one execution environment: it starts a bootstrap and gives it events.

`Environment.invoke` returns an answer as soon as the function begins to respond, so a caller
sees the chunks of a streamed response while the function still runs. The stub knows nothing of
API Gateway, and of no function in particular.

Source: AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".
"""

import http.server
import json
import queue
import socket
import subprocess
import threading
import time
import uuid

# Lambda refuses larger responses of a function that does not stream.
BUFFERED_MAX = 6 * 1024 * 1024
_END = object()


class Crashed(Exception):
    """The function ended before its response did."""


class Answer:
    """The response to one event. `streamed` and `content_type` are those of the function."""

    def __init__(self, streamed, content_type, error=None):
        self.streamed, self.content_type, self.error = streamed, content_type, error
        self._chunks = queue.Queue()

    def __iter__(self):
        """The chunks, each when it arrives."""
        while (chunk := self._chunks.get()) is not _END:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


class Environment:
    """One execution environment. It handles one event at a time, as on Lambda."""

    def __init__(self, bootstrap, variables, folder, log):
        self.request = None
        # Whether it is in use: from its start, or the claim of its owner, until the function asks
        # for the next event.
        self.claimed, self.handed = True, False
        self.events, self.answers = queue.Queue(), queue.Queue()
        # Set by the first request for an event: the function has started.
        self.ready = threading.Event()
        self.server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{self.server.server_port}"
        self.process = subprocess.Popen(
            [bootstrap], env=variables | {"AWS_LAMBDA_RUNTIME_API": address}, cwd=folder, stdout=log, stderr=log
        )
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        self.process.wait()
        self.answers.put(Crashed(f"the function ended with {self.process.returncode}"))
        if self.request is not None:
            self.request.put(Crashed("the function ended within its response"))

    @property
    def alive(self):
        return self.process.poll() is None

    def invoke(self, event, seconds, arn, trace=None):
        """Gives `event` to the function, which has `seconds`. Returns its answer when that begins."""
        headers = {
            "Lambda-Runtime-Aws-Request-Id": str(uuid.uuid4()),
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + seconds) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": arn,
        }
        if trace:
            headers["Lambda-Runtime-Trace-Id"] = trace
        self.events.put((headers, json.dumps(event).encode()))
        answer = self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.events.put(None)
        self.server.shutdown()
        self.server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self):
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address

    def handle_error(self, request, client_address):
        """A killed function closes its connections; its environment reports that."""


def _handler(environment):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            if not self.path.endswith("/runtime/invocation/next"):
                return self._reply(404)
            environment.ready.set()
            if environment.handed:
                environment.claimed = environment.handed = False
            event = environment.events.get()
            if event is None:
                return self._reply(500)
            environment.handed = True
            headers, body = event
            return self._reply(200, body, headers)

        def do_POST(self):
            kind = self.path.rsplit("/", 1)[-1]
            if kind == "response":
                streamed = self.headers.get("Lambda-Runtime-Function-Response-Mode") == "streaming"
                answer = Answer(streamed, self.headers.get("Content-Type", ""))
            else:
                answer = Answer(False, "application/json", error=b"".join(self._body()))
            environment.request = chunks = answer._chunks
            environment.answers.put(answer)
            size = 0
            for chunk in self._body() if kind == "response" else ():
                size += len(chunk)
                chunks.put(chunk)
            if not answer.streamed and size > BUFFERED_MAX:
                chunks.put(Crashed(f"the response has {size} bytes"))
            chunks.put(_END)
            environment.request = None
            self._reply(202)

        def _body(self):
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
                return
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            # Trailers, up to the empty line.
            while self.rfile.readline().strip():
                pass

        def _reply(self, status, body=b"", headers=None):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
