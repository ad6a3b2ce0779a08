"""Every route of the template once, with the status of its response."""

import uuid

from deploy import PARAMETERS
from world import check, message

HOOK = "https://hooks.example.com/a2a"
ORIGIN = PARAMETERS["CorsOrigin"]
OLD = {"A2A-Version": None}
# The agent of these cases has no extended card. Its refusal shows that the route is served.
EXTENDED = {"/extendedAgentCard", "/v1/card", "/{tenant}/extendedAgentCard", "/agent/authenticatedExtendedCard"}
NO_EXTENDED_CARD = (400, 404)
CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/agent.json", "/a2a-lambda/schemas")


def _send10():
    return {"message": message("echo route")}


def _send03():
    said = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "content": [{"text": "echo route"}]}
    return {"message": said}


def _send01():
    said = {"role": "user", "parts": [{"type": "text", "text": "echo route"}]}
    return {"id": f"route-{uuid.uuid4()}", "message": said}


def _rows(task, ended, event, tenant):
    """(method, route): (path, body, headers). A route with two variables names a push config `one`."""
    hook01 = {"id": task, "pushNotificationConfig": {"url": HOOK}}
    hook03 = {
        "parent": f"tasks/{task}", "configId": "one",
        "config": {"name": f"tasks/{task}/pushNotificationConfigs/one", "pushNotificationConfig": {"url": HOOK}},
    }
    rows = {
        ("POST", "/"): ("/", {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task}}, {}),
        ("POST", "/v1/message:send"): ("/v1/message:send", _send03(), OLD),
        ("POST", "/v1/message:stream"): ("/v1/message:stream", _send03(), OLD),
        ("GET", "/v1/card"): ("/v1/card", None, OLD),
        ("GET", "/agent/authenticatedExtendedCard"): ("/agent/authenticatedExtendedCard", None, OLD),
        ("POST", "/v1/tasks/{id}/pushNotificationConfigs"): (f"/v1/tasks/{task}/pushNotificationConfigs", hook03, OLD),
        ("POST", "/tasks/send"): ("/tasks/send", _send01(), OLD),
        ("POST", "/tasks/sendSubscribe"): ("/tasks/sendSubscribe", _send01(), OLD),
        ("POST", "/tasks/stream"): ("/tasks/stream", _send01(), OLD),
        ("POST", "/tasks/resubscribe"): ("/tasks/resubscribe", {"id": ended}, OLD | {"Last-Event-ID": event}),
        ("POST", "/tasks/get"): ("/tasks/get", {"id": task}, OLD),
        ("GET", "/tasks/{id}/get"): (f"/tasks/{task}/get", None, OLD),
        ("POST", "/tasks/pushNotification/set"): ("/tasks/pushNotification/set", hook01, OLD),
        ("POST", "/tasks/pushNotification/get"): ("/tasks/pushNotification/get", {"id": task}, OLD),
        ("POST", "/a2a-lambda/uploads"): ("/a2a-lambda/uploads", {"size": 1, "sha256": "ab" * 32}, {}),
    }
    for prefix, headers in (("", {}), ("/v1", OLD), ("/{tenant}", {})):
        at = prefix.replace("{tenant}", tenant)
        config = f"/tasks/{task}/pushNotificationConfigs"
        generic = {
            ("POST", "/message:send"): ("/message:send", _send10()),
            ("POST", "/message:stream"): ("/message:stream", _send10()),
            ("GET", "/tasks"): ("/tasks", None),
            ("GET", "/tasks/{id}"): (f"/tasks/{task}", None),
            ("GET", "/extendedAgentCard"): ("/extendedAgentCard", None),
            ("POST", "/tasks/{id}/pushNotificationConfigs"): (config, {"taskId": task, "id": "one", "url": HOOK}),
            ("GET", "/tasks/{id}/pushNotificationConfigs"): (config, None),
            ("GET", "/tasks/{id}/pushNotificationConfigs/{configId}"): (f"{config}/one", None),
            ("DELETE", "/tasks/{id}/pushNotificationConfigs/{configId}"): (f"{config}/one", None),
        }
        for (method, route), (path, body) in generic.items():
            rows.setdefault((method, prefix + route), (at + path, body, headers))
    for path in (*CARDS, "/health", "/a2a-lambda/health", "/metrics", "/a2a-lambda/skills", "/a2a-lambda/contexts", "/a2a-lambda/usage"):
        rows["GET", path] = (path, None, {})
    for path in CARDS:
        rows["HEAD", path] = (path, None, {})
    return rows


def case_every_route_of_the_template_is_answered(world):
    ann = world.caller("main", "ann", "--scope", "ops")
    event, frame = next(ann.frames("POST", "/message:stream", {"message": message("steps 1")}))
    ended, open_task = frame["task"]["id"], ann.send("hm")["id"]
    ann.until(ended)
    rows = _rows(open_task, ended, event, ann.tenant)
    paths = world.deployment.api["paths"]
    for path in paths:
        asked = path.replace("{tenant}", ann.tenant).replace("{id}", "x").replace("{configId}", "x")
        response = world.stranger().open("OPTIONS", asked)
        check(response.status == 200 and response.getheader("Access-Control-Allow-Origin") == ORIGIN, f"OPTIONS {path}")
    routes = [(method.upper(), path) for path, methods in paths.items() for method in methods if method != "options"]
    last = {  # These end what the others use.
        ("POST", "/tasks/cancel"): ("/tasks/cancel", {"id": ann.send("hm")["id"]}, OLD),
        ("DELETE", "/a2a-lambda/tasks/{id}"): (f"/a2a-lambda/tasks/{ended}", None, {}),
        ("DELETE", "/a2a-lambda/contexts/{id}"): (f"/a2a-lambda/contexts/{ann.send('hm')['contextId']}", None, {}),
    }
    for prefix in ("", "/v1", "/{tenant}"):
        path = f"{prefix.replace('{tenant}', ann.tenant)}/tasks/{ann.send('hm')['id']}:cancel"
        last["POST", f"{prefix}/tasks/{{id}}"] = (path, {}, OLD if prefix == "/v1" else {})
    # A config is made before it is read, and read before it is removed.
    order = {"POST": 0, "GET": 1, "HEAD": 1, "DELETE": 2}
    for method, route in sorted(routes, key=lambda it: ((it in last), order[it[0]])):
        path, body, headers = last.get((method, route)) or rows[method, route]
        status, answer = ann.call(method, path, body, headers)
        expected = NO_EXTENDED_CARD if route in EXTENDED else (200, 202, 204)
        check(status in expected, f"{method} {route}", status, answer)
    check(not rows.keys() - set(routes) - {("GET", "/v1/extendedAgentCard")}, "no row without a route",
          sorted(rows.keys() - set(routes)))


def case_a_card_answers_head_with_the_etag_of_get_and_no_body(world):
    for path in CARDS:
        got, asked = (world.stranger().open(method, path) for method in ("GET", "HEAD"))
        check(got.status == asked.status == 200, path, got.status, asked.status)
        tags = got.getheader("ETag"), asked.getheader("ETag")
        check(tags[0] and tags[0] == tags[1], "the ETags", path, tags)
        sizes = len(got.read()), asked.getheader("Content-Length"), len(asked.read())
        # The function gives no body: API Gateway counts what it gets.
        check(sizes[0] > 0 and sizes[1:] == ("0", 0), "the bodies", path, sizes)
