"""The agent that ACTS starts: the conformance agent behind a proxy that knows the tokens of ACTS.

ACTS starts an agent with `--httpPort N --grpcPort M` and sends `Bearer itk-valid-token` with most
requests. API keys of a2a-lambda have another form, so the proxy replaces the tokens. gRPC is not
served. The environment variable A2A_LOCAL names the program `a2a-local`.

ITK_ACTS_REDUCED_CAPABILITIES=1: the agent streams nothing and takes no webhooks.
ITK_ACTS_AUTH=1: the agent refuses callers without a key; the insufficient token is one of a
tenant that an operator has braked.
"""

import argparse
import http.client
import http.server
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

VALID, INSUFFICIENT = "Bearer itk-valid-token", "Bearer itk-insufficient-token"
# Headers of one connection: the proxy makes its own.
OF_CONNECTION = {"connection", "transfer-encoding", "keep-alive", "host"}


def on(name):
    return os.environ.get(name, "") not in ("", "0")


class Agent:
    """The program, and the headers that stand for the tokens of ACTS."""

    def __init__(self, port):
        self.program = os.environ["A2A_LOCAL"]
        self.tokens = {VALID: None}
        settings = os.environ | {"A2A_PUBLIC_URL": f"http://127.0.0.1:{port}"}
        if on("ITK_ACTS_REDUCED_CAPABILITIES"):
            settings |= {"A2A_STREAMING": "off", "A2A_PUSH": "off"}
        else:
            # ACTS receives webhooks on this machine.
            settings |= {"A2A_PUSH_ALLOW_PRIVATE": "on"}
        flags = ["--memory"]
        if on("ITK_ACTS_AUTH"):
            self.folder = tempfile.TemporaryDirectory()
            data = ["--data", self.folder.name]
            self.tokens = {VALID: self.key("valid", data), INSUFFICIENT: self.key("braked", data)}
            self.run("brake", "set", "--tenant", "braked", *data)
            flags = ["--auth", "keys", *data]
        command = [self.program, "--agent", "conformance", "--card", "v1", "--port", "0", *flags]
        self.process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, text=True)
        self.port = next(int(found[1]) for line in self.process.stdout
                         if (found := re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)))
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout

    def key(self, tenant, data):
        return "Bearer " + self.run("keys", "create", "--tenant", tenant, "--subject", "acts", *data).split()[-1]

    def headers(self, given):
        """The headers of a request, with the token that the agent knows; `None` is no token."""
        headers = {name: value for name, value in given.items() if name.lower() not in OF_CONNECTION}
        token = headers.get("Authorization")
        if token in self.tokens:
            del headers["Authorization"]
            if self.tokens[token]:
                headers["Authorization"] = self.tokens[token]
        return headers


def handler(agent):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            upstream = http.client.HTTPConnection("127.0.0.1", agent.port)
            upstream.request(self.command, self.path, body or None, agent.headers(self.headers))
            response = upstream.getresponse()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in OF_CONNECTION:
                    self.send_header(name, value)
            # The connection ends with the response, so that a stream needs no chunks.
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            while chunk := response.read1(65536):
                self.wfile.write(chunk)
                self.wfile.flush()
            upstream.close()

        do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET

        def log_message(self, *_):
            """Writes no line for each request."""

    return Handler


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--httpPort", type=int, required=True)
    arguments.add_argument("--grpcPort", type=int, help="ignored: gRPC is not served")
    port = arguments.parse_args().httpPort
    agent = Agent(port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler(agent)) as server:
            print(f"serving on http://127.0.0.1:{port}", flush=True)
            server.serve_forever()
    finally:
        agent.process.terminate()
        agent.process.wait()


if __name__ == "__main__":
    main()
