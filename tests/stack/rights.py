"""Shows that each granted action is needed: without it some case fails, because the role is refused.

A grant is one action on one resource. Each is taken from a copy of its deployed policy, the
function is started again, and the cases that used the grant run until one of them fails.
"""

import fnmatch
import json
import re
import time

POLLS = "the event source mapping of Lambda polls with it; the emulator polls without a role"
ABORTS = "ends a multipart upload that failed; no case breaks one off"
# (folder of the function, action, end of the resource): why no case needs it. A grant that is
# listed here and needed, or that is not granted, is an error.
UNPROVEN = (
    {(function, "s3:AbortMultipartUpload", "bucket/v1/*"): ABORTS for function in ("tasks-send", "tasks-stream", "rpc", "worker")}
    | {
        (function, f"sqs:{action}", queue): POLLS
        for function, queue in (("worker", "WorkQueue"), ("push", "PushQueue"))
        for action in ("DeleteMessage", "GetQueueAttributes", "ReceiveMessage")
    }
    | {("relay", f"dynamodb:{action}", "Table/stream"): POLLS for action in ("DescribeStream", "GetRecords", "GetShardIterator")}
    | {
        ("relay", "dynamodb:ListStreams", "Table/stream/*"): POLLS,
        ("relay", "sqs:SendMessage", "RelayFailures"): "Lambda sends there what the relay gave up on; the emulator does so without a role",
        ("tasks-stream", "dynamodb:BatchGetItem", "Table"): "a turn whose read is refused goes on at a worker, and its stream follows it",
        ("ops", "dynamodb:UpdateItem", "Table"): "notes the stored form of an empty table, as it does before the cases",
        ("worker", "sqs:SendMessage", "WorkQueue"): "sends a turn above the share of its tenant again; a case would need forty turns at once",
        ("sweep", "dynamodb:BatchGetItem", "Table"): "reads the open tasks of one shard together; no case has two in one",
        ("sweep", "sqs:SendMessage", "PushQueue"): "sends again what waited for 5 minutes; a case would have to wait as long",
        ("sweep", "s3:GetObject", "bucket/v1/*"): "reads the content of a large task that it fails or continues; no case has one",
        ("sweep", "s3:PutObject", "bucket/v1/*"): "stores the content of a large task that it fails or continues; no case has one",
        ("sweep", "dynamodb:PutItem", "Table"): "notes where a round over all objects stopped; without it the next round begins anew",
        ("sweep", "s3:DeleteObject", "bucket/up/*"): "removes the upload of a task that a deletion left; no case breaks a deletion off",
    }
)
# So long a case without a right may wait for what does not happen.
PATIENCE_S = 12


class Grant:
    """One action of one role on one resource."""

    def __init__(self, function, role, policy, statement, action, resource):
        self.function, self.role, self.policy = function, role, policy
        self.statement, self.action, self.resource = statement, action, resource
        self.conditions = statement.get("Condition")

    def covers(self, decision):
        return (
            decision["role"] == self.role
            and decision["action"] == self.action
            and fnmatch.fnmatchcase(decision["resource"], self.resource)
        )

    def __str__(self):
        keys = [key for operator in (self.conditions or {}).values() for value in operator.values() for key in _list(value)]
        return f"{self.function}: {self.action} on {self.place}" + (f" ({', '.join(keys)})" if keys else "")

    @property
    def place(self):
        """The resource without the names that the emulator makes up."""
        named = self.resource.partition(":table/")[2] or self.resource.split(":")[-1]
        head, _, tail = re.sub(r"/stream/\d.*", "/stream", named).partition("/")
        return head.removeprefix("stack-").split("-")[0] + (f"/{tail}" if tail else "")


def _list(value):
    return value if isinstance(value, list) else [value]


def grants(world):
    """Every grant of the inline policies of the functions' roles."""
    iam = world.deployment.iam
    for function, role in world.deployment.roles.items():
        for policy in iam.list_role_policies(RoleName=role)["PolicyNames"]:
            document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
            for statement in _list(document["Statement"]):
                for action in _list(statement["Action"]):
                    for resource in _list(statement["Resource"]):
                        yield Grant(function, role, policy, statement, action, resource)


def without(world, grant):
    """Puts the copy of a policy that lacks `grant`. Returns what restores it."""
    iam, names = world.deployment.iam, {"RoleName": grant.role, "PolicyName": grant.policy}
    whole = iam.get_role_policy(**names)["PolicyDocument"]
    kept = []
    for statement in _list(whole["Statement"]):
        for action in _list(statement["Action"]):
            resources = _list(statement["Resource"])
            if statement == grant.statement and action == grant.action:
                resources = [it for it in resources if it != grant.resource]
            if resources:
                kept.append(statement | {"Action": action, "Resource": resources})
    iam.put_role_policy(**names, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": kept}))
    return lambda: iam.put_role_policy(**names, PolicyDocument=json.dumps(whole))


def _fresh(world, function):
    """No process knows what it was allowed to read, and no result of the authorizer is kept."""
    world.functions.restart(world.deployment.functions[function])
    world.gateway.forget()


def _needed(world, grant, candidates):
    """The name of a case that fails without `grant` because of it, or None."""
    restore = without(world, grant)
    try:
        for name, case in candidates:
            _fresh(world, grant.function)
            after = len(world.emulator.decided())
            try:
                case(world)
            except Exception:  # which one does not matter: the decisions say whose fault it is
                refused = [it for it in world.emulator.decided(after) if not it["allowed"]]
                if any(grant.covers(it) for it in refused):
                    return name
    finally:
        restore()
        _fresh(world, grant.function)
    return None


def run(world, chosen, only=""):
    """Tries each grant. Returns the number of faults."""
    began, faults = time.monotonic(), 0
    used = {name: world.emulator.decided(*world.marks[name]) for name, _ in chosen}
    every = [it for it in grants(world) if only in str(it)]
    world.patience = PATIENCE_S
    shown = 0
    for grant in every:
        with_it = [(n, c) for n, c in chosen if any(grant.covers(it) for it in used[n])]
        with_it.sort(key=lambda it: world.times[it[0]])
        case = _needed(world, grant, with_it)
        reason = UNPROVEN.get((grant.function, grant.action, grant.place))
        if case:
            shown += 1
            print(f"needed  {grant}: {case.replace('_', ' ')}", flush=True)
        elif reason:
            print(f"not shown  {grant}: {reason}", flush=True)
        else:
            print(f"FAILED: {grant}: {f'{len(with_it)} cases use it and pass without it' if with_it else 'no case uses it'}", flush=True)
        if case and reason:
            print(f"FAILED: {grant} is needed, and listed as unproven", flush=True)
        faults += bool(case) == bool(reason)
    known = {(it.function, it.action, it.place) for it in every}
    for entry in [] if only else UNPROVEN.keys() - known:
        faults += 1
        print(f"FAILED: {entry} is listed as unproven, and not granted")
    print(f"{len(every)} grants, {shown} shown to be needed, in {time.monotonic() - began:.0f} s")
    return faults
