"""What an operator sees, and the functions that no call reaches."""

import contextlib
import http.server
import json
import os
import re
import threading

from world import check, message, state

HOOK = "https://hooks.example.invalid/a2a"


def case_health_is_public_and_its_report_is_not(world):
    status, answer = world.stranger().call("GET", "/health")
    check(status == 200 and set(answer) == {"status"}, "everybody sees the status alone", status, answer)
    check(world.stranger().call("GET", "/a2a-lambda/health")[0] == 401, "the report needs a key")
    for path, expected in (("/a2a-lambda/health", 403), ("/a2a-lambda/usage?days=2", 200)):
        status, answer = world.caller().call("GET", path)
        check(status == expected, "the report needs the scope ops, and the own use does not", path, status, answer)
    status, answer = world.owner().call("GET", "/a2a-lambda/health")
    check(status == 200, "the first key has it", status, answer)
    works = {name: it["status"] for name, it in answer["dependencies"].items()}
    check(answer["warnings"] == ["the table has no deletion protection"], "a table that a mistake could delete", answer)
    check(len(works) >= 4 and set(works.values()) == {"ok"}, "every dependency works under the role of ops", answer)


def case_metrics_count_the_calls_of_other_functions(world):
    ann = world.caller()
    for _ in range(3):
        ann.send("echo count")
    check(ann.call("GET", "/metrics")[0] == 403, "they need the scope ops")

    def counts():
        status, text = world.owner().call("GET", "/metrics")
        check(status == 200 and text.startswith("#"), "the text format", status, text)
        return [_total(text, method) for method in ("SendMessage", "ListTasks")]

    before = counts()

    def counted():
        # A process adds its counters to the table at most each 10 s, at the end of a call.
        ann.call("POST", "/message:send", {"message": message("echo count")})
        ann.call("GET", "/tasks")
        return all(now > then for now, then in zip(counts(), before))

    world.wait("the count", counted)


def _total(text, method):
    """The calls of a method, over all labels."""
    found = re.findall(rf'^a2a_requests_total\{{[^}}]*method="{method}"[^}}]*\}} (\d+)', text, re.M)
    return sum(map(int, found))


def case_skills_get_the_secret_and_the_rights_of_the_operator_and_nothing_else_does(world):
    """A function that runs skills does not start without the secret."""
    ann = world.caller()
    ask = {"message": message("echo here")}
    check(ann.send("echo here")["id"], "tasks-send has it")
    check(list(ann.frames("POST", "/message:stream", ask)), "tasks-stream has it")
    check(ann.rpc("SendMessage", ask)["task"]["id"], "rpc has it")
    check(state(ann.until(ann.send("echo here", immediately=True)["id"])) == "TASK_STATE_COMPLETED", "the worker has it")
    having = set()
    for folder, role in world.deployment.roles.items():
        attached = world.deployment.iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        if world.deployment.own["SkillPolicyArn"] in [it["PolicyArn"] for it in attached]:
            having.add(folder)
    check(having == {"tasks-send", "tasks-stream", "rpc", "worker"}, "only they have the policy", sorted(having))
    secrets = world.emulator.client("secretsmanager")
    secret = secrets.get_secret_value(SecretId=world.deployment.own["SkillSecretArn"])["SecretString"]
    key = json.loads(secret)["PRICES_KEY"]
    logs = [it.name for it in world.emulator.folder.glob("*.log") if key in it.read_text(errors="replace")]
    check(len(key) >= 32 and not logs, "no log shows the secret", logs)


def _sweep(world):
    check(world.invoke("sweep", {"source": "aws.events"}) is None, "the sweep has no response")
    return True


def case_the_sweep_continues_a_turn_of_a_process_that_died(world):
    ann = world.caller()
    frames = ann.frames("POST", "/message:stream", {"message": message("steps 4 400")})
    task = next(frame["task"]["id"] for _, frame in frames if "task" in frame)
    next(frame for _, frame in frames if "step 1" in str(frame))
    world.functions.restart(world.deployment.functions["tasks-stream"])
    world.age(ann.tenant)
    _sweep(world)
    ended = ann.until(task)
    runs = {run.split("-")[1] for run in ended["artifacts"][0]["parts"][0]["data"]["steps"]}
    check(state(ended) == "TASK_STATE_COMPLETED" and len(runs) == 2, "a worker ends it", ended)
    world.gateway.problems.clear()  # The gateway noticed that the process died.


def case_the_sweep_removes_expired_state(world):
    ann = world.caller()
    ann.send("note it", contextId="mine")
    # Compression hardly shrinks it.
    ann.send("note " + os.urandom(60_000).hex(), contextId="large")
    states = world.items(ann.tenant, SK="STATE")
    objects = {it["object"]["S"] for it in states if "object" in it}
    check(len(states) == 2 and len(objects) == 1, "the contexts have state, the larger one in the bucket", states)
    world.age(ann.tenant)
    world.wait("the removal", lambda: _sweep(world) and not world.items(ann.tenant, SK="STATE"))
    check(not objects & set(world.objects("v1/")), "with its object", objects)


def case_the_sweep_ends_a_deletion(world):
    """Of a context: the call ends its life, and the sweep lets its id go."""
    ann = world.caller()
    ann.send("note it", contextId="mine")
    for _ in range(3):
        ann.send("file 100000", contextId="mine")
    check(ann.call("DELETE", "/a2a-lambda/contexts/mine")[0] in (200, 202, 204), "it is deleted")
    world.age(ann.tenant)
    world.wait("the end", lambda: _sweep(world) and not world.items(ann.tenant, status="cleared"))


def case_the_relay_takes_a_removal_by_ttl_and_does_nothing(world):
    key = {"PK": {"S": "T#t#S#ann#T#x"}, "SK": {"S": "META"}}
    record = {
        "eventID": "1", "eventName": "REMOVE", "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
        "userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
        "dynamodb": {"Keys": key, "SequenceNumber": "111", "SizeBytes": 20, "StreamViewType": "NEW_IMAGE"},
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/x",
    }
    answer = world.invoke("relay", {"Records": [record]})
    check(answer == {"batchItemFailures": []}, "the record does not come back", answer)



def case_a_push_config_is_removed_over_json_rpc(world):
    ann = world.caller()
    task = ann.send("hm")["id"]
    made = ann.rpc("CreateTaskPushNotificationConfig", {"taskId": task, "id": "one", "url": HOOK})
    check(made["id"] == "one", "it is made", made)
    ann.rpc("DeleteTaskPushNotificationConfig", {"taskId": task, "id": "one"})
    left = ann.rpc("ListTaskPushNotificationConfigs", {"taskId": task})
    check(not left.get("configs"), "and removed", left)




def case_dead_letters_and_failures_are_empty(world):
    for name in ("WorkDeadLetters", "PushDeadLetters", "RelayFailures"):
        found = world.sqs.get_queue_attributes(
            QueueUrl=world.deployment.physical[name], AttributeNames=["ApproximateNumberOfMessages"]
        )
        check(found["Attributes"]["ApproximateNumberOfMessages"] == "0", name, found["Attributes"])


def _asked(world, kind):
    """What `ops` answers CloudFormation, which asks it directly here."""
    answers = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        world.invoke("ops", {"RequestType": kind, "ResponseURL": f"http://127.0.0.1:{server.server_port}/", "StackId": "s",
                             "RequestId": "r", "ResourceType": "Custom::Settings", "LogicalResourceId": "l"})
        server.shutdown()
    [answer] = answers
    return answer["Status"], answer["Reason"]


@contextlib.contextmanager
def _noted(world, form):
    """The table notes another form, or none."""
    key = {"PK": {"S": "F#form"}, "SK": {"S": "FORM"}}
    before = world.dynamodb.get_item(TableName=world.table, Key=key)["Item"]
    if form is None:
        world.dynamodb.delete_item(TableName=world.table, Key=key)
    else:
        world.dynamodb.put_item(TableName=world.table, Item=before | {"schema": {"N": str(form)}})
    try:
        yield lambda: world.dynamodb.get_item(TableName=world.table, Key=key).get("Item", {}).get("schema")
    finally:
        world.dynamodb.put_item(TableName=world.table, Item=before)


def case_ops_refuses_a_table_of_another_stored_form_whatever_the_request(world):
    world.caller().send("echo stored")
    with _noted(world, 1) as noted:
        for kind in ("Create", "Update"):
            status, why = _asked(world, kind)
            check(status == "FAILED" and "use a release that reads 1" in why, "an older form", kind, why)
        check(_asked(world, "Delete") == ("SUCCESS", ""), "a deletion needs no form")
        check(noted() == {"N": "1"}, "and leaves it", noted())
    with _noted(world, 99) as noted:
        status, why = _asked(world, "Update")
        check(status == "FAILED" and "use a release that reads 99" in why, "a newer form", why)
        check(noted() == {"N": "99"}, "it stays", noted())
    with _noted(world, None) as noted:
        for kind in ("Create", "Update"):
            status, why = _asked(world, kind)
            check(status == "FAILED" and "items of a build before" in why, "items without a form", kind, why)
        check(noted() is None, "nothing is noted", noted())
    check(_asked(world, "Update") == ("SUCCESS", ""), "its own form")
