"""Fourteen incidents: each ends with the alarms that ring, and with the command of its row in docs/operations.md.

An alarm on a metric of the stack selects lines that were written here. An alarm on a metric of
AWS watches a deployed resource. A command that the emulator cannot show is printed with the reason.
"""

import concurrent.futures
import json
import os

from signals import Signals
from world import check, message, state

# Incident: the alarms of infra/alarms.yaml that ring.
RINGS = {
    "a poisoned message": "DeadLettersAlarm",
    "a throttled table": "TableThrottlesAlarm",
    "a table that refuses": "FailedCallsAlarm",
    "a bucket that refuses": "FailedCallsAlarm",
    "a deleted secret key": "FailedCallsAlarm",
    "a model that is down": "FailedTurnsAlarm",
    "a stuck worker": "FunctionErrorsAlarm",
    "dead letters": "DeadLettersAlarm",
    "a hot partition": "TableThrottlesAlarm",
    "made-up keys": "AuthorizerErrorsAlarm",
    # Of the turns that wait for the workers that it takes.
    "a runaway loop": "WorkQueueAlarm",
    "a webhook that is down": "PushesGivenUpAlarm",
    "a clock that is off": "AuthorizerErrorsAlarm",
    "a relay that is behind": "RelayAgeAlarm RelaySilentAlarm",
}


class Incident:
    """What is written from now on, and which alarms ring."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.before = set(world.emulator.lines())

    def lines(self, *words):
        return [it for it in self.world.emulator.lines() if it not in self.before and all(word in it for word in words)]

    def rings(self, *not_run):
        signals, lines = Signals(self.world), self.lines()
        for alarm in RINGS[self.name].split():
            signals.rung(alarm, lines)
        for reason in not_run:
            print(f"not run  {self.name}: {reason}", flush=True)


def _fails(caller, method, params, times=3):
    """Calls over JSON-RPC that end with an internal error."""
    for _ in range(times):
        status, answer = caller.call("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        check(status in (200, 503) and answer["error"]["code"] == -32603, f"{method} fails", status, answer)


def _ask(text):
    return {"message": message(text)}


def _letters(world, queue, count):
    """The messages of a queue of dead letters, once it has so many. It is empty afterwards."""
    url, found = world.deployment.physical[queue], {}

    def all_of_them():
        more = world.sqs.receive_message(QueueUrl=url, MessageAttributeNames=["reason"], MaxNumberOfMessages=10).get("Messages", ())
        found.update({it["MessageId"]: it for it in more})
        return len(found) >= count

    world.wait(f"{count} letters in {queue}", all_of_them)
    world.sqs.purge_queue(QueueUrl=url)
    return list(found.values())


def case_a_poisoned_message_rings_at_once_and_says_its_reason(world):
    incident = Incident(world, "a poisoned message")
    bodies = ["no JSON", "{}", '{"v": 1, "tenant": ""}']
    for queue in ("WorkQueue", "PushQueue"):
        url = world.deployment.physical[queue]
        world.sqs.purge_queue(QueueUrl=url)
        for body in (*bodies, '{"v": 99, "is": "of a later release"}'):
            world.sqs.send_message(QueueUrl=url, MessageBody=body)
        found = _letters(world, queue.replace("Queue", "DeadLetters"), len(bodies))
        check(sorted(it["Body"] for it in found) == sorted(bodies), "no other message is a dead letter", found)
        check(all(it["MessageAttributes"]["reason"]["StringValue"] for it in found), "with its reason", found)
        hidden = lambda: world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["ApproximateNumberOfMessagesNotVisible"]
        world.wait("the later form, and nothing else, waits for its release", lambda: hidden() == "1")
        world.sqs.purge_queue(QueueUrl=url)
    incident.rings()


def case_dead_letters_ring_and_name_their_task(world):
    incident, ann = Incident(world, "dead letters"), world.caller()
    task = ann.send("hm")["id"]
    body = {"v": 1, "tenant": ann.tenant, "subject": "ann", "task": task}
    world.sqs.send_message(QueueUrl=world.deployment.physical["WorkDeadLetters"], MessageBody=json.dumps(body))
    incident.rings()
    [letter] = _letters(world, "WorkDeadLetters", 1)
    named = json.loads(letter["Body"])
    printed = world.operator("task", named["task"], "--tenant", named["tenant"], "--bucket", world.bucket)
    check(task in printed and "input-required" in printed, "the command prints the task", printed)


def case_a_stuck_worker_rings_and_is_succeeded(world):
    """The turn continues after the steps that had ended."""
    incident, ann = Incident(world, "a stuck worker"), world.caller()
    task = ann.send("steps 6 700", immediately=True)["id"]
    worker = world.deployment.functions["worker"]
    for _, frame in ann.frames("GET", f"/tasks/{task}:subscribe"):
        if "step 2" in str(frame):
            break
    check(world.emulator.kill(worker) > 0, "a worker runs")
    ended = ann.until(task)
    runs = [run.split("-")[1] for run in ended["artifacts"][0]["parts"][0]["data"]["steps"]]
    check(len(runs) == 6 and len(set(runs)) == 2, "two processes did the steps", ended)
    incident.rings()


def case_a_runaway_loop_is_braked_and_ended(world):
    incident, (ann, bob) = Incident(world, "a runaway loop"), (world.caller(), world.caller())
    task = ann.send("steps 60 500", immediately=True)["id"]
    ann.until(task, {"TASK_STATE_WORKING"})
    stopped = world.operator("brake", "set", "--tenant", ann.tenant)
    try:
        check(task in stopped, "the command waits for the turn", stopped)
        # It has also waited until each process has read it.
        for method, path, body in (("POST", "/message:send", _ask("echo")), ("GET", "/tasks", None)):
            status, answer = ann.call(method, path, body)
            check(status == 403 and "PERMISSION_DENIED" in str(answer), "refused", method, path, status, answer)
        check(bob.send("echo other")["id"], "others are not")
        world.operator("end-task", task, "--tenant", ann.tenant, "--bucket", world.bucket)
    finally:
        world.operator("brake", "lift", "--tenant", ann.tenant)
    world.wait("the lift", lambda: ann.call("POST", "/message:send", _ask("echo"))[0] == 200)
    check(state(ann.ok("GET", f"/tasks/{task}")) == "TASK_STATE_CANCELED", "it has ended")
    incident.rings()


def case_a_throttled_table_rings(world):
    Incident(world, "a throttled table").rings("raise `TableMaxReadUnits`: the emulator refuses no request; stack-parameters changes the cap")


def case_a_hot_partition_rings(world):
    Incident(world, "a hot partition").rings("find the caller in `units.read`: the emulator refuses no request")


def case_a_clock_that_is_off_rings(world):
    Incident(world, "a clock that is off").rings("mend the clock: an issuer of JWTs has a public address, so none is here; unit tests refuse its times")


def case_a_table_that_refuses_rings_and_its_right_heals_it(world):
    incident, ann = Incident(world, "a table that refuses"), world.caller()
    with world.without("dynamodb:*", "rpc"):
        _fails(ann, "SendMessage", _ask("echo hello"), 30)
    incident.rings()
    check(ann.rpc("SendMessage", _ask("echo hello")), "it goes on")


def case_a_bucket_that_refuses_rings_and_its_right_heals_it(world):
    incident, ann = Incident(world, "a bucket that refuses"), world.caller()
    large = _ask("echo " + os.urandom(60_000).hex())
    with world.without("s3:*", "rpc", "ops"):
        _fails(ann, "SendMessage", large)
        check(ann.rpc("SendMessage", _ask("echo small")), "small tasks go on")
        _, report = world.owner().call("GET", "/a2a-lambda/health")
        check(report["dependencies"]["bucket"]["status"] != "ok", "the report names it", report)
    incident.rings()
    check(ann.rpc("SendMessage", large), "it goes on")


def case_a_deleted_secret_key_rings_and_is_restored(world):
    incident, ann = Incident(world, "a deleted secret key"), world.caller()
    task = ann.send("hm")["id"]
    secrets, key = world.emulator.client("secretsmanager"), world.deployment.physical["SecretKey"]
    secrets.delete_secret(SecretId=key, RecoveryWindowInDays=7)
    try:
        world.functions.restart(world.deployment.functions["rpc"])
        hook = {"taskId": task, "id": "one", "url": "https://hooks.example.invalid/a2a", "token": "t"}
        _fails(ann, "CreateTaskPushNotificationConfig", hook)
        check(ann.rpc("SendMessage", _ask("echo on")), "sends go on")
    finally:
        secrets.restore_secret(SecretId=key)
    incident.rings()
    check(ann.rpc("CreateTaskPushNotificationConfig", hook), "it goes on")


def case_a_model_that_is_down_rings_and_an_answer_heals_it(world):
    """The reference agent's functions, in place of those of the conformance agent."""
    incident, ann = Incident(world, "a model that is down"), world.caller()
    settings = {"A2A_MODEL_ID": "m", "A2A_MODEL_PROVIDER": "openai", "A2A_MODEL_ENDPOINT_URL": "http://127.0.0.1:9/v1"}
    with world.reference("tasks-send", settings), world.reference("worker", settings):
        sent = [ann.send("How are you today?", immediately=True)["id"] for _ in range(3)]
        ended = [ann.until(it) for it in sent]
    check({state(it) for it in ended} == {"TASK_STATE_FAILED"}, "the tasks fail", ended)
    incident.rings()


def case_a_webhook_that_is_down_rings(world):
    """Stream, relay, push queue and `push`, up to its request. The name does not exist anywhere."""
    incident, ann = Incident(world, "a webhook that is down"), world.caller()
    world.sqs.purge_queue(QueueUrl=world.deployment.physical["PushQueue"])
    task = ann.send("hm")
    for name in ("first", "last1", "last2", "last3"):
        ann.rpc("CreateTaskPushNotificationConfig", {"taskId": task["id"], "id": name, "url": f"https://{name}.example.invalid/a2a", "token": "t"})
    for last in world.items(ann.tenant):
        if last["SK"]["S"].startswith("PUSH#last") and "attempts" in last:
            world.dynamodb.put_item(TableName=world.table, Item=last | {"attempts": {"N": "23"}})
    # What the webhook would get is in the bucket: nothing shrinks it.
    ann.send("echo " + os.urandom(150_000).hex(), taskId=task["id"], contextId=task["contextId"])
    world.wait("the last attempts", lambda: len(incident.lines("gave up", task["id"], "no connection to the host of the webhook")) == 3)
    world.wait("the first attempt", lambda: incident.lines('"push.attempts":1', task["id"]))
    waiting = world.sqs.get_queue_attributes(QueueUrl=world.deployment.physical["PushQueue"], AttributeNames=["All"])["Attributes"]
    check(waiting["ApproximateNumberOfMessagesDelayed"] != "0", "a message waits for the second attempt", waiting)
    incident.rings()


def case_a_relay_that_is_behind_rings_and_its_mapping_heals_it(world):
    incident, ann = Incident(world, "a relay that is behind"), world.caller()
    lambdas, mapping = world.deployment.lambdas, world.deployment.physical["RelayMapping"]
    lambdas.update_event_source_mapping(UUID=mapping, Enabled=False)
    try:
        task = ann.send("echo later", immediately=True)["id"]
        world.age(ann.tenant)
        check(world.invoke("sweep", {"source": "aws.events"}) is None, "the sweep sends the turn")
        ann.until(task)
    finally:
        lambdas.update_event_source_mapping(UUID=mapping, Enabled=True)
    ann.until(ann.send("echo now", immediately=True)["id"])
    incident.rings()


def case_sixty_made_up_keys_ring(world):
    incident = Incident(world, "made-up keys")
    keys = [f"a2a_none{number}_{'x' * 43}" for number in range(60)]
    with concurrent.futures.ThreadPoolExecutor(8) as several:
        codes = set(several.map(lambda it: world.stranger(it).call("GET", "/tasks")[0], keys))
    check(codes == {401}, "they are refused", codes)
    lines = [json.loads(it) for it in incident.lines("a2a_lambda::caller")]
    check({it["a2a.error"] for it in lines} == {"UNKNOWN_KEY"}, "with the reason", lines)
    incident.rings("`WebAcl=rate`: the emulator has no web ACL in front of an API; stack-parameters sets it")
