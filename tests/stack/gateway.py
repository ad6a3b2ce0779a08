"""A small API Gateway: a REST API with a REQUEST authorizer, from the resolved template.

It makes the events of payload format 1.0, keeps results of the authorizer per header value,
evaluates their policy for each call, and sends the responses that the template has for its own
errors. Integrations with `responseTransferMode: STREAM` hand each chunk on at once and check the
prelude. It has no throttling, no access log, no WAF and no time limits.

Sources: API Gateway Developer Guide, "Input format of a Lambda function for proxy integration",
"Input to an API Gateway Lambda authorizer", "Set up a Lambda proxy integration with payload
response streaming", "Gateway response types".
"""

import fnmatch
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse
import uuid

from runtime_api import Crashed

# API Gateway accepts no larger bodies.
BODY_MAX = 10 * 1024 * 1024
# The prelude of a streamed response ends with eight NULs, within this many bytes.
PRELUDE_MAX, DIVIDER = 16 * 1024, b"\0" * 8
ACCOUNT, REGION = "000000000000", "us-east-1"


class Refused(Exception):
    """A response of API Gateway itself: its type and status."""

    def __init__(self, kind, status, why=""):
        super().__init__(f"{kind} {why}")
        self.kind, self.status = kind, status


class Routes:
    """The resources of the API. A static part wins over a variable."""

    def __init__(self, paths):
        self.tree = {}
        for path, methods in paths.items():
            node = self.tree
            for part in path.strip("/").split("/") if path != "/" else []:
                if ("{" in part or "}" in part) and not re.fullmatch(r"\{\w+\+?\}", part):
                    raise ValueError(f"{path}: API Gateway refuses the part `{part}`")
                node = node.setdefault(part, {})
            node[""] = (path, {method.upper(): operation for method, operation in methods.items()})

    def find(self, path):
        """The resource, its operations and the path parameters, or None."""
        node, found = self.tree, {}
        for part in path.strip("/").split("/") if path != "/" else []:
            if part in node and part:
                node = node[part]
                continue
            variable = next((name for name in node if name.startswith("{")), None)
            if variable is None or not part:
                return None
            found[variable.strip("{}+")] = urllib.parse.unquote(part)
            node = node[variable]
        return (*node[""], found or None) if "" in node else None


class Gateway:
    """The API at `http://127.0.0.1:<port>/<stage>`, and at `domains`: host to base path."""

    def __init__(self, functions, domains):
        self.functions, self.domains = functions, domains
        self.known, self.asked, self.problems, self.routes_served = {}, 0, [], set()
        self.server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self.server.server_port

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def load(self, body, api, stage, variables):
        """Serves this OpenAPI document, in which CloudFormation has resolved everything."""
        self.routes = Routes(body["paths"])
        self.api, self.stage, self.variables = api, stage, variables
        self.answers = body["x-amazon-apigateway-gateway-responses"]
        [scheme] = body["components"]["securitySchemes"].values()
        self.authorizer = scheme["x-amazon-apigateway-authorizer"]
        [server] = body["servers"]
        self.closed = server["x-amazon-apigateway-endpoint-configuration"]["disableExecuteApiEndpoint"]
        self.routes_known = sum(map(len, body["paths"].values()))

    def forget(self):
        """What `ReauthorizeEvery` seconds do to the kept results of the authorizer."""
        self.known.clear()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def place(self, host, path):
        """The path within the API, and the path as the event has it."""
        bare = host.rsplit(":", 1)[0]
        if bare in self.domains:
            base = self.domains[bare]
            if path != base and not path.startswith(base + "/"):
                raise Refused("MISSING_AUTHENTICATION_TOKEN", 403)
            return path[len(base):] or "/", path, path
        if self.closed:
            raise Refused("ACCESS_DENIED", 403)
        begin = f"/{self.stage}"
        if path != begin and not path.startswith(begin + "/"):
            raise Refused("MISSING_AUTHENTICATION_TOKEN", 403)
        inner = path[len(begin):] or "/"
        return inner, inner, path

    def event(self, request, match, path, whole):
        """The event of payload format 1.0."""
        resource, _, parameters = match
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query, keep_blank_values=True)
        headers = {}
        for name, value in request.headers.items():
            headers.setdefault(name, []).append(value)
        now = time.time()
        return {
            "resource": resource,
            "path": path,
            "httpMethod": request.command,
            "headers": {name: values[-1] for name, values in headers.items()},
            "multiValueHeaders": headers,
            "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
            "multiValueQueryStringParameters": query or None,
            "pathParameters": parameters,
            "stageVariables": self.variables,
            "requestContext": {
                "accountId": ACCOUNT,
                "apiId": self.api,
                "domainName": request.headers.get("Host", ""),
                "extendedRequestId": uuid.uuid4().hex,
                "httpMethod": request.command,
                "identity": {"sourceIp": "127.0.0.1", "userAgent": request.headers.get("User-Agent")},
                "path": whole,
                "protocol": "HTTP/1.1",
                "requestId": str(uuid.uuid4()),
                "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
                "requestTimeEpoch": int(now * 1000),
                "resourceId": uuid.uuid5(uuid.NAMESPACE_URL, resource).hex[:6],
                "resourcePath": resource,
                "stage": self.stage,
            },
            "body": None,
            "isBase64Encoded": False,
        }

    def admit(self, event):
        """The context of the authorizer. Its result counts for every path, so the policy is evaluated each time."""
        name = self.authorizer["identitySource"].rsplit(".", 1)[-1].lower()
        given = [value for header, values in event["multiValueHeaders"].items() if header.lower() == name for value in values]
        if not given or not given[-1]:
            raise Refused("UNAUTHORIZED", 401)
        context = event["requestContext"]
        stage = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{self.api}/{self.stage}"
        method = f"{stage}/{event['httpMethod']}/{event['path'].lstrip('/')}"
        key = ",".join(given)
        if key not in self.known:
            self.asked += 1
            asked = {k: v for k, v in event.items() if k not in ("body", "isBase64Encoded")}
            result = self._ask(asked | {"type": "REQUEST", "methodArn": method})
            self.known[key] = result
        result = self.known[key]
        if not _allows(result["policyDocument"], method):
            raise Refused("ACCESS_DENIED", 403)
        context["authorizer"] = result.get("context", {}) | {
            "principalId": result["principalId"], "integrationLatency": 1,
        }

    def _ask(self, event):
        function = self.functions.of(self.authorizer["authorizerUri"])
        answer, error = self.functions.invoke(function, event)
        if error:
            if answer.get("errorMessage") == "Unauthorized":
                raise Refused("UNAUTHORIZED", 401)
            raise Refused("AUTHORIZER_FAILURE", 500, str(answer))
        wrong = [v for v in answer.get("context", {}).values() if not isinstance(v, (str, int, float, bool))]
        if wrong or "principalId" not in answer or "policyDocument" not in answer:
            raise Refused("AUTHORIZER_CONFIGURATION_ERROR", 500, str(answer))
        return answer

    def serve(self, request):
        """Answers one request."""
        try:
            body = request.content()
            path, seen, whole = self.place(request.headers.get("Host", ""), urllib.parse.urlsplit(request.path).path)
            match = self.routes.find(path)
            operation = match and match[1].get(request.command)
            if not operation:
                raise Refused("MISSING_AUTHENTICATION_TOKEN", 403)
            self.routes_served.add((request.command, match[0]))
            if operation["x-amazon-apigateway-integration"]["type"] == "mock":
                self._mock(request, operation["x-amazon-apigateway-integration"])
                return
            event = self.event(request, match, seen, whole)
            if operation["security"] != [{"NONE": []}]:
                self.admit(event)
            event["body"] = body.decode() if body else None
            integration = operation["x-amazon-apigateway-integration"]
            function = self.functions.of(integration["uri"])
            if integration.get("responseTransferMode") == "STREAM":
                self._stream(request, function, event, integration["timeoutInMillis"] / 1000)
            else:
                self._whole(request, function, event)
        except Refused as refused:
            self._refuse(request, refused)

    def _mock(self, request, integration):
        """The answer to a preflight, which API Gateway makes itself."""
        response = integration["responses"]["default"]
        headers = [
            (name.removeprefix("method.response.header."), value.strip("'"))
            for name, value in response["responseParameters"].items()
        ]
        request.reply(int(response["statusCode"]), headers, b"{}")

    def _whole(self, request, function, event):
        answer, error = self.functions.invoke(function, event)
        if error or not isinstance(answer, dict) or "statusCode" not in answer:
            self.problems.append(f"{function} answered {str(answer)[:500]}")
            raise Refused("DEFAULT_5XX", 502)
        if answer.get("isBase64Encoded"):
            self.problems.append(f"{function} sent binary, which an API without binary media types returns as text")
        headers = [(name, value) for name, values in (answer.get("multiValueHeaders") or {}).items() for value in values]
        named = {name.lower() for name, _ in headers}
        headers += [(n, v) for n, v in (answer.get("headers") or {}).items() if n.lower() not in named]
        request.reply(answer["statusCode"], headers, (answer.get("body") or "").encode())

    def _stream(self, request, function, event, seconds):
        try:
            answer = self.functions.stream(function, event, seconds)
            if answer.error is not None:
                raise Crashed(answer.error.decode(errors="replace"))
            chunks = iter(answer)
            status, headers, rest = self._prelude(answer, chunks)
        except (Crashed, ValueError) as broken:
            self.problems.append(f"{function}: {broken}")
            raise Refused("DEFAULT_5XX", 502) from broken
        request.begin(status, headers)
        try:
            request.chunk(rest)
            for chunk in chunks:
                request.chunk(chunk)
        except Crashed as broken:
            self.problems.append(f"{function}: {broken}")
            request.close_connection = True
            return
        request.end()

    def _prelude(self, answer, chunks):
        """Status and headers of a streamed response, and what followed them in the same chunk."""
        if not answer.streamed or answer.content_type != "application/vnd.awslambda.http-integration-response":
            raise ValueError(f"no streamed response: {answer.content_type}")
        seen = b""
        while DIVIDER not in seen:
            seen += next(chunks, b"") or b"\0" * PRELUDE_MAX
            if len(seen.split(DIVIDER)[0]) > PRELUDE_MAX:
                raise ValueError("the prelude has no end")
        head, _, rest = seen.partition(DIVIDER)
        prelude = json.loads(head)
        headers = prelude.get("headers") or {}
        if set(prelude) - {"statusCode", "headers", "multiValueHeaders", "cookies"}:
            raise ValueError(f"the prelude has {sorted(prelude)}")
        if not all(isinstance(value, str) for value in headers.values()):
            raise ValueError(f"a header of the prelude is no text: {headers}")
        return prelude["statusCode"], list(headers.items()), rest

    def _refuse(self, request, refused):
        """What API Gateway answers itself: the response of its type, else the default of its class."""
        default = "DEFAULT_4XX" if refused.status < 500 else "DEFAULT_5XX"
        found = self.answers.get(refused.kind) or self.answers[default]
        headers = [("x-amzn-ErrorType", refused.kind), ("Content-Type", "application/json")]
        for name, value in found.get("responseParameters", {}).items():
            headers.append((name.removeprefix("gatewayresponse.header."), value.strip("'")))
        text = found["responseTemplates"]["application/json"]
        request.reply(int(found.get("statusCode", refused.status)), headers, text.encode())


def _allows(policy, method):
    """Whether `policy` allows the method; a Deny wins."""
    effects = set()
    for statement in policy["Statement"]:
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        if any(fnmatch.fnmatchcase(method, pattern) for pattern in resources):
            effects.add(statement["Effect"])
    return effects == {"Allow"}


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self):
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address

    def handle_error(self, request, client_address):
        """A client that goes away ends its connection and nothing else."""


def _handler(gateway):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            gateway.serve(self)

        do_HEAD = do_POST = do_DELETE = do_PUT = do_PATCH = do_OPTIONS = do_GET

        def content(self):
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size)
            if size > BODY_MAX:
                raise Refused("REQUEST_TOO_LARGE", 413)
            return body

        def reply(self, status, headers, body):
            self._head(status, headers)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def begin(self, status, headers):
            self._head(status, headers)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()

        def chunk(self, data):
            if data:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

        def end(self):
            self.wfile.write(b"0\r\n\r\n")

        def _head(self, status, headers):
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)

    return Handler
