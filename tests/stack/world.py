"""What a case works with: the deployed stack, its callers, and checks."""

import contextlib
import http.client
import json
import subprocess
import time
import urllib.request
import uuid

from deploy import ROOT, Deployment, stripped
from emulator import LOST
from functions import Functions
from gateway import Gateway

V1 = {"A2A-Version": "1.0"}
# A domain of the operator's own, with the base path of its mapping.
DOMAIN, BASE = "agents.example.com", "/helper"
ENDED = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}


class Wrong(Exception):
    """A response that a case does not expect."""


def check(condition, what, *seen):
    if not condition:
        raise Wrong(f"{what}: {json.dumps(seen, default=str)[:1500]}")


def message(text, **more):
    parts = more.pop("parts", [{"text": text}])
    return {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": parts, **more}


def state(frame):
    """The state in a 1.0 response or frame."""
    for member in ("task", "statusUpdate"):
        if member in frame:
            return frame[member]["status"]["state"]
    return frame["status"]["state"] if "status" in frame else None


class Caller:
    """A client with one `Authorization` header."""

    def __init__(self, gateway, key, patience, tenant=None):
        self.gateway, self.key, self.patience, self.tenant = gateway, key, patience, tenant

    def open(self, method, path, body=None, headers=None, host=None, raw=None):
        """The response as soon as its headers have arrived. `path` is within the API."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=self.patience)
        sent = V1 | ({"Authorization": f"Bearer {self.key}"} if self.key else {}) | (headers or {})
        if host:
            sent["Host"] = host
        content = raw
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            content = json.dumps(body).encode()
        base = BASE if host == DOMAIN else f"/{self.gateway.stage}"
        connection.request(method, base + path, content, {name: it for name, it in sent.items() if it is not None})
        return connection.getresponse()

    def call(self, method, path, body=None, headers=None, **more):
        """Status and content of a response."""
        response = self.open(method, path, body, headers, **more)
        text = response.read()
        with contextlib.suppress(ValueError):
            return response.status, json.loads(text)
        return response.status, text.decode(errors="replace")

    def ok(self, method, path, body=None, headers=None):
        status, answer = self.call(method, path, body, headers)
        check(status == 200, f"{method} {path} is answered", status, answer)
        return answer

    def send(self, text, path="/message:send", immediately=False, **more):
        ask = {"message": message(text, **more)}
        if immediately:
            ask["configuration"] = {"returnImmediately": True}
        return self.ok("POST", path, ask)["task"]

    def rpc(self, method, params):
        answer = self.ok("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        check("result" in answer, f"{method} succeeds", answer)
        return answer["result"]

    def frames(self, method, path, body=None, headers=None):
        """The events of a stream as (id, data), each as soon as it arrives."""
        response = self.open(method, path, body, headers)
        kind = response.headers.get("Content-Type", "")
        if response.status != 200 or not kind.startswith("text/event-stream"):
            raise Wrong(f"{method} {path} opens no stream: {response.status} {response.read()[:500]}")
        at = None
        while line := response.readline():
            if line.startswith(b"id:"):
                at = line[3:].strip().decode()
            if line.startswith(b"data:"):
                yield at, json.loads(line[5:])
                at = None

    def until(self, task, wanted=ENDED):
        """The task once it has one of these states."""
        ends = time.monotonic() + self.patience
        while time.monotonic() < ends:
            found = self.ok("GET", f"/tasks/{task}")
            if found["status"]["state"] in wanted:
                return found
            time.sleep(0.2)
        raise Wrong(f"the task stays {found['status']['state']}")


class World:
    """The stack, its gateway and its operator."""

    def __init__(self, emulator, packages, binaries=None, patience=60, root=ROOT, stack="stack", change=str):
        self.emulator, self.binaries, self.patience, self.packages = emulator, binaries, patience, packages
        # Of each case: its seconds, and the lines of its decisions.
        self.times, self.marks = {}, {}
        # Lines that say what an incident took away.
        self.meant = set()
        self.deployment = Deployment(emulator, packages, root, stack, change)
        self.deployment.create()
        self.functions = Functions(self.deployment)
        self.gateway = Gateway(self.functions, {DOMAIN: BASE})
        self._load()
        self.gateway.start()
        check(self.url.split("/")[2].startswith(self.gateway.api), "the stage says its address", self.url)
        self.first_key = self._first_key()
        self.dynamodb, self.sqs = emulator.client("dynamodb"), emulator.client("sqs")
        self.table, self.bucket = self.deployment.outputs["TableName"], self.deployment.outputs["BucketName"]

    def _load(self):
        """The gateway serves the newest deployment of the API, with the variables of its stage."""
        stage, variables = self.deployment.stage()
        self.url = variables["publicUrl"]
        self.gateway.load(self.deployment.api, self.deployment.physical["Api"], stage, variables)

    @contextlib.contextmanager
    def changed(self, **parameters):
        """Deploys with these values of parameters, and with those before at the end."""
        before = {name: self.deployment.parameters.get(name) for name in parameters}
        before = {name: self.deployment.default(name) if value is None else value for name, value in before.items()}
        self.deploy(**parameters)
        try:
            yield
        finally:
            self.deploy(**before)

    def deploy(self, **parameters):
        self.deployment.update(parameters)
        self.functions.refresh()
        self._load()
        if "FirstKeySecret" in self.deployment.physical:
            self.first_key = self._first_key()
        # No caller waits here for `ReauthorizeEvery` seconds.
        self.gateway.forget()

    def _first_key(self):
        """What the command of the output FirstKeyCommand prints."""
        secrets = self.emulator.client("secretsmanager")
        name = self.deployment.physical["FirstKeySecret"]
        return "a2a_first_" + secrets.get_secret_value(SecretId=name)["SecretString"]

    def operator(self, *words):
        """A command of `a2a-local` on the deployment's table, with the operator's rights."""
        command = [self.binaries / "a2a-local", *words, "--endpoint", self.emulator.url, "--table", self.table]
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        done = subprocess.run(command, env=keys, cwd=self.emulator.folder, capture_output=True, text=True)
        check(done.returncode == 0, f"{words} succeeds", done.stderr)
        return done.stdout.strip()

    def owner(self):
        """A caller with the first key of the stack, which has the scope ops."""
        return Caller(self.gateway, self.first_key, self.patience, "main")

    def caller(self, tenant=None, subject="ann", *more):
        """A caller with an API key of its own, of a tenant of its own if none is given."""
        tenant = tenant or f"t{uuid.uuid4().hex[:12]}"
        key = self.operator("keys", "create", "--tenant", tenant, "--subject", subject, *more)
        return Caller(self.gateway, key, self.patience, tenant)

    def stranger(self, key=None):
        return Caller(self.gateway, key, self.patience)

    @contextlib.contextmanager
    def without(self, action, *functions):
        """Takes a right away from the roles of functions, as a mistake in the console does."""
        iam, names = self.deployment.iam, [{"RoleName": self.deployment.roles[it], "PolicyName": LOST} for it in functions]
        denied = {"Sid": LOST, "Effect": "Deny", "Action": action, "Resource": "*"}
        for name in names:
            iam.put_role_policy(**name, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [denied]}))
        before = set(self.emulator.lines())
        try:
            yield
        finally:
            for name in names:
                iam.delete_role_policy(**name)
            self.meant |= set(self.emulator.lines()) - before

    @contextlib.contextmanager
    def reference(self, function, settings):
        """Runs the reference agent's function in place of the conformance agent's, with more settings."""
        name, lambdas, variables = self.deployment.functions[function], self.deployment.lambdas, self.variables(function)
        more = json.loads(variables["A2A_SETTINGS"]) | settings
        before = urllib.request.urlopen(lambdas.get_function(FunctionName=name)["Code"]["Location"]).read()
        lambdas.update_function_code(FunctionName=name, ZipFile=stripped(self.binaries / function, self.emulator.folder))
        lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": variables | {"A2A_SETTINGS": json.dumps(more)}})
        self.functions.refresh()
        try:
            yield
        finally:
            lambdas.update_function_code(FunctionName=name, ZipFile=before)
            lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
            self.functions.refresh()

    def invoke(self, function, event):
        """The response of a function that nothing but an event starts."""
        name = self.deployment.functions[function]
        answer, error = self.functions.invoke(name, event)
        check(not error, f"{function} handles its event", answer)
        return answer

    def variables(self, function):
        """The variables of a function, as it is started."""
        name, _, qualifier = self.deployment.started()[function].partition(":")
        more = {"Qualifier": qualifier} if qualifier else {}
        config = self.deployment.lambdas.get_function_configuration(FunctionName=name, **more)
        return config["Environment"]["Variables"]

    def running(self, function, setting):
        """The values of a setting in the processes of a function that the emulator runs."""
        processes = self.emulator.processes(self.deployment.functions[function])
        return {self.emulator.variables(process).get(setting) for process in processes}

    def wait(self, what, found, more=0):
        """What `found` returns, once that is true; `more` seconds longer than for other things."""
        ends = time.monotonic() + self.patience + more
        while time.monotonic() < ends:
            if seen := found():
                return seen
            time.sleep(0.2)
        raise Wrong(f"{what} did not happen")

    def items(self, tenant, **wanted):
        """The items of a tenant, those with these attributes."""
        found = []
        for page in self.dynamodb.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True):
            found += [it for it in page["Items"] if it["PK"]["S"].startswith(f"T#{tenant}#")]
        return [it for it in found if all(it.get(name) == {"S": value} for name, value in wanted.items())]

    def age(self, tenant):
        """Lets the times of a tenant pass: leases, the expiry of contexts, and what a sweep waits for."""
        for item in self.items(tenant):
            passed = {name: {"N": "1"} for name in ("open_at", "lease_until") if name in item}
            if item["PK"]["S"].startswith(f"T#{tenant}#C#") and item["SK"]["S"] == "META":
                body = json.loads(item["body"]["S"]) | {"stateExpiresAt": 1}
                passed["body"] = {"S": json.dumps(body)}
                if item["status"]["S"] == "cleared":
                    passed["expires_at"] = {"N": "1"}
            if "dispatch" in item:
                body = json.loads(item["body"]["S"]) | {"dispatchedAt": int(time.time() - 600) * 1000}
                passed["body"] = {"S": json.dumps(body)}
            if item["SK"]["S"] == "STATE":
                passed["expires_at"] = {"N": "1"}
            if passed:
                self.dynamodb.put_item(TableName=self.table, Item=item | passed)

    def objects(self, prefix):
        """The keys of the bucket below `prefix`."""
        return [it["Key"] for it in self.deployment.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])]

    def stop(self):
        self.gateway.stop()
        self.functions.stop()


__all__ = ["BASE", "DOMAIN", "ENDED", "ROOT", "V1", "Caller", "World", "Wrong", "check", "message", "state"]
