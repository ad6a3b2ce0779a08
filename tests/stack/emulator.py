"""Starts the emulator of AWS with its IAM, and records each decision of that IAM.

As a program it is the emulator's process: it corrects the differences to AWS below, and writes
each decision about a role as a JSON line to the file in STACK_DECISIONS.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

# In AWS these calls need the right to the single action (SQS Developer Guide, "Amazon SQS API
# permissions"). The emulator asks for a right of their own, which AWS does not have.
SINGLE = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
# The statement that takes a right away for an incident.
LOST = "Lost"
ROOT = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


class Emulator:
    """A running emulator, and the processes that it started."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._clear()
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        self.decisions = self.folder / "decisions.jsonl"
        self.decisions.write_text("")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        # The functions inherit these variables, so they are all of them.
        variables = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder / "tmp"),
            "HOME": str(self.folder / "tmp"),
            "AUTH": "true",
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "AWS_ENDPOINT_URL": self.url,
            "STACK_DECISIONS": str(self.decisions),
            # Lambda sets it: the functions know by it that they are deployed.
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        }
        self.log = open(self.folder / "emulator.log", "wb")
        self.process = subprocess.Popen(
            [sys.executable, "-B", __file__], env=variables, stdout=self.log, stderr=self.log, cwd=self.folder,
            start_new_session=True,
        )

    def _clear(self):
        """Removes what an earlier run left."""
        for name in ("tmp", "code"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for log in self.folder.glob("*.log"):
            log.unlink()

    def wait(self):
        while self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"the emulator did not start; its log is {self.log.name}")

    def client(self, service):
        import boto3
        from botocore.config import Config

        config = Config(retries={"total_max_attempts": 2}, read_timeout=120, max_pool_connections=50, s3={"addressing_style": "path"})
        return boto3.client(service, endpoint_url=self.url, config=config, **ROOT)

    def processes(self, function):
        """The ids of the processes of `function` that the emulator runs."""
        named = f"AWS_LAMBDA_FUNCTION_NAME={function}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(folder.name)) != self.process.pid:
                    continue
                if named in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
            except (OSError, ValueError):
                continue

    def variables(self, process):
        """The environment of a process."""
        entries = pathlib.Path(f"/proc/{process}/environ").read_text().split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)

    def kill(self, function):
        """Ends the processes of `function` at once. Returns how many there were."""
        found = list(self.processes(function))
        for process in found:
            os.kill(process, signal.SIGKILL)
        return len(found)

    def lines(self):
        """What the functions have written, in no order between two of them."""
        files = (file.read_text(errors="replace") for file in sorted(self.folder.glob("*.log")))
        return [line for text in files for line in text.splitlines() if line.startswith("{")]

    def decided(self, after=0, before=None):
        """The decisions of the lines from `after` to `before`."""
        lines = self.decisions.read_text().splitlines()[after:before]
        return [json.loads(line) for line in lines]

    def stop(self):
        """Ends the emulator and the functions that it started: they are a session of their own."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()


def _leading_keys(body):
    """The partition keys that a request to DynamoDB names. The emulator knows no dynamodb:LeadingKeys."""
    found, left = [], [body]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            if "S" in (key := value.get("PK") or {}):
                found.append(key["S"])
            left += value.values()
        elif isinstance(value, list):
            left += value
    if named := re.match(r"\s*#?\w+ = (:\w+)", body.get("KeyConditionExpression", "")):
        found += body["ExpressionAttributeValues"][named[1]].values()
    return found


def _record(iam, path):
    """Writes each decision about a role to a file."""
    inner, record = iam.enforce, open(path, "a", buffering=1)

    def enforce(access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
        action = SINGLE.get(iam_action, iam_action)
        request = iam._signed_request.get()
        if service == "dynamodb" and request is not None and request.body:
            body = json.loads(request.body)
            service_context = (service_context or {}) | {"dynamodb:LeadingKeys": _leading_keys(body)}
            if "Select" in body:
                service_context["dynamodb:Select"] = body["Select"]
        denied = inner(access_key_id, action, service, region, resource_arn, service_context)
        caller = iam.resolve_caller_identity(access_key_id) or {}
        _, found, session = caller.get("userArn", "").partition(":assumed-role/")
        if found:
            # What an incident takes away is no fault of a role.
            meant = getattr(denied, "matched_sid", None) == LOST
            line = {"role": session.split("/")[0], "action": action, "resource": resource_arn, "allowed": denied is None or meant}
            record.write(json.dumps(line) + "\n")
        return denied

    iam.enforce = enforce
    return inner, enforce


def _make_secrets(provisioners, secrets):
    """Secrets as CloudFormation makes them: generated with every option, and a `Ref` to one is its ARN."""
    handlers = provisioners._RESOURCE_HANDLERS["AWS::SecretsManager::Secret"]
    create, update, delete = handlers["create"], handlers["update"], handlers["delete"]

    def name(arn):
        return next((name for name, it in secrets._secrets.items() if it["ARN"] == arn), arn)

    def generated(properties):
        options = dict(properties["GenerateSecretString"])
        key, rest = options.pop("GenerateStringKey", None), options.pop("SecretStringTemplate", None)
        status, _, body = secrets._get_random_password(options)
        if status != 200:
            raise ValueError(body)
        password = json.loads(body)["RandomPassword"]
        return json.dumps(json.loads(rest) | {key: password}) if key else password

    def created(*arguments):
        _, attributes = create(*arguments)
        return attributes["Arn"], attributes

    def updated(arn, *arguments):
        _, attributes = update(name(arn), *arguments)
        return attributes["Arn"], attributes

    provisioners._sm_secret_string = generated
    handlers |= {"create": created, "update": updated, "delete": lambda arn, properties: delete(name(arn), properties)}


def _keep_the_api(provisioners):
    """A changed definition of a REST API changes the API. The emulator would make another one."""
    handler = provisioners._RESOURCE_HANDLERS["AWS::ApiGateway::RestApi"]
    update = handler["update"]
    handler["update"] = lambda physical, old, new, *more: update(physical, old, new | {"Body": old["Body"]}, *more)


def _refuse_existing_log_groups(provisioners):
    """A log group with a name that is taken is not created. The emulator would replace it."""
    handler = provisioners._RESOURCE_HANDLERS["AWS::Logs::LogGroup"]
    create = handler["create"]

    def created(logical, properties, stack):
        name = properties.get("LogGroupName")
        if name in provisioners._cw_logs._log_groups:
            raise ValueError(f"Resource of type 'AWS::Logs::LogGroup' with identifier '{name}' already exists.")
        return create(logical, properties, stack)

    handler["create"] = created


def _refuse_protected_tables(provisioners):
    """A table with deletion protection is not deleted, by a rollback neither."""
    handler = provisioners._RESOURCE_HANDLERS["AWS::DynamoDB::Table"]
    delete = handler["delete"]

    def deleted(table, properties):
        if provisioners._dynamodb._tables.get(table, {}).get("DeletionProtectionEnabled"):
            raise ValueError(f"Resource cannot be deleted as it is currently protected against deletion: {table}")
        delete(table, properties)

    handler["delete"] = deleted


def _deliver_lines_late(provisioners, iam):
    """Lines of a function arrive after its log group is deleted. They make it again, if its role may."""
    handlers, late = provisioners._RESOURCE_HANDLERS, set()
    function, group = (handlers[kind]["delete"] for kind in ("AWS::Lambda::Function", "AWS::Logs::LogGroup"))

    def without_function(name, properties):
        place, role = properties.get("LoggingConfig", {}).get("LogGroup"), properties["Role"].split("/")[-1]
        # The name of a group ends with a colon in policies (CloudWatch Logs User Guide, "log group ARN").
        asked = iam.EvalContext(properties["Role"], "AssumedRole", "000000000000", "logs:CreateLogGroup",
                                f"arn:aws:logs:us-east-1:000000000000:log-group:{place}:", "us-east-1")
        if iam.evaluate(asked, iam._gather_role_policies(role, "000000000000")).decision == "Allow":
            late.add(place)
        function(name, properties)

    def without_group(name, properties):
        group(name, properties)
        if name in late:
            provisioners._cw_logs._create_log_group({"logGroupName": name})

    handlers["AWS::Lambda::Function"]["delete"], handlers["AWS::Logs::LogGroup"]["delete"] = without_function, without_group


def _refuse_what_does_not_exist(cloudformation, alarms):
    """A parameter that the template does not have, and a rollback trigger that is no alarm, fail a deployment."""
    from ministack.services.cloudformation import handlers

    resolve = handlers._resolve_parameters

    def resolved(template, given, *more):
        unknown = sorted({it["Key"] for it in given if "Key" in it} - template.get("Parameters", {}).keys())
        if unknown:
            raise ValueError(f"Parameters: {unknown} do not exist in the template")
        return resolve(template, given, *more)

    def watched(operation):
        def handled(request):
            triggers = [it for name, it in request.items() if re.search(r"RollbackTriggers.*\.Arn$", name)]
            triggers = [it[0] if isinstance(it, list) else it for it in triggers]
            if missing := set(triggers) - {it["AlarmArn"] for it in alarms.values()}:
                return handlers._error("ValidationError", f"Rollback triggers {sorted(missing)} do not exist")
            return operation(request)
        return handled

    handlers._resolve_parameters = resolved
    for name in ("CreateStack", "UpdateStack"):
        cloudformation._ACTION_HANDLERS[name] = watched(cloudformation._ACTION_HANDLERS[name])


def _serve():
    from ministack import app
    from ministack.core import iam_evaluator
    from ministack.services import cloudformation, cloudwatch, secretsmanager
    from ministack.services.cloudformation import provisioners

    inner, enforce = _record(iam_evaluator, os.environ["STACK_DECISIONS"])
    # The modules that took the function by name before it was replaced.
    for module in list(sys.modules.values()):
        if getattr(module, "enforce", None) is inner:
            module.enforce = enforce
    _make_secrets(provisioners, secretsmanager)
    _keep_the_api(provisioners)
    _refuse_existing_log_groups(provisioners)
    _refuse_protected_tables(provisioners)
    _deliver_lines_late(provisioners, iam_evaluator)
    _refuse_what_does_not_exist(cloudformation, cloudwatch._alarms)
    app.main()


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    _serve()
