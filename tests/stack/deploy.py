"""Transforms template.yaml as SAM does, and deploys the result to the emulator.

`EDITS` has everything that the deployed template differs in. An edit that finds nothing to
change fails, so none outlives its reason.
"""

import io
import json
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/template"))
BUCKET = "packages"
# The functions that serve an agent, and so are replaced by `stack-agent`.
AGENT = {"agent-card", "tasks-send", "tasks-get", "tasks-stream", "rpc", "worker", "sweep", "ops"}
# Settings as an operator may have them: a killed worker is missed sooner.
SETTINGS = {"A2A_LEASE": "6s"}
# Parameters as an operator may set them; the others are those of `samconfig.toml`. With `both`
# the functions also write counters into the table, so `GET /metrics` has something to show.
PARAMETERS = {
    "Settings": json.dumps(SETTINGS), "Metrics": "table", "CorsOrigin": "https://app.example.com",
    "AlarmEmail": "operator@example.com",
}


def _kind(function):
    """Which function it is: the name of its folder in this repository."""
    return function["Properties"]["Environment"]["Variables"]["A2A_FUNCTION"]


class Failed(Exception):
    """A deployment that CloudFormation took back."""


class Unedited(Exception):
    """An edit did not find what it changes."""


def _named(template, kind):
    found = {name: it for name, it in template["Resources"].items() if it["Type"] == kind}
    if not found:
        raise Unedited(f"the template has no {kind}")
    return found


def packages_are_in_s3(source, uris):
    """What `sam deploy` does: the code of each function is an object."""
    for name, function in _named(source, "AWS::Serverless::Function").items():
        place = function["Properties"]["CodeUri"]
        if not place.startswith(("functions/", "agent/")):
            raise Unedited(f"{name} has the code {place}")
        function["Properties"]["CodeUri"] = uris[_kind(function)]


def nested_templates_are_in_s3(template, nested):
    """What `sam deploy` does: the template of each nested stack is an object."""
    for name, stack in _named(template, "AWS::CloudFormation::Stack").items():
        place = stack["Properties"]["TemplateURL"]
        if not place.startswith("infra/"):
            raise Unedited(f"{name} has the template {place}")
        stack["Properties"]["TemplateURL"] = nested(place)


def no_metric_math(template, _):
    """The emulator has no alarms on metric math: they watch their first metric."""
    sums = [it["Properties"] for it in _named(template, "AWS::CloudWatch::Alarm").values() if "Metrics" in it["Properties"]]
    if not sums:
        raise Unedited("no alarm uses metric math")
    for alarm in sums:
        first = next(it["MetricStat"] for it in alarm.pop("Metrics") if "MetricStat" in it)
        alarm |= first["Metric"] | {"Statistic": first["Stat"], "Period": first["Period"]}


def no_refusal_of_plain_http(template, _):
    """The emulator has no TLS."""
    policies = _named(template, "AWS::S3::BucketPolicy")
    statements = [it for p in policies.values() for it in p["Properties"]["PolicyDocument"]["Statement"]]
    if [it.get("Sid") for it in statements] != ["OnlyOverTls"]:
        raise Unedited(f"a bucket policy says {statements}")
    for name in policies:
        del template["Resources"][name]


def numbers_are_numbers(template, values):
    """The emulator keeps the value of a parameter as a text, which stops its poller and the SDK for Rust."""
    mappings = _named(template, "AWS::Lambda::EventSourceMapping").values()
    places = [it["Properties"]["ScalingConfig"] for it in mappings if "ScalingConfig" in it["Properties"]]
    for table in _named(template, "AWS::DynamoDB::Table").values():
        places += [index["OnDemandThroughput"] for index in table["Properties"]["GlobalSecondaryIndexes"]]
    for place in places:
        for name, value in place.items():
            parameter = value["Ref"]
            place[name] = int(values.get(parameter, template["Parameters"][parameter]["Default"]))
    if not places:
        raise Unedited("no mapping and no index has a limit")


# In their order.
EDITS = [
    no_metric_math,
    no_refusal_of_plain_http,
    numbers_are_numbers,
]


def samconfig(environment="default", root=ROOT):
    """The parameters that `sam deploy` passes for an environment of samconfig.toml."""
    config = tomllib.loads((root / "samconfig.toml").read_text())
    return config[environment]["deploy"]["parameters"]["parameter_overrides"]


class _Attributes(dict):
    """The attributes of a resource: the ARN is that of a function."""

    def __init__(self, physical):
        super().__init__(Arn=f"arn:aws:lambda:us-east-1:000000000000:function:{physical}")

    def __contains__(self, _):
        return True

    def __missing__(self, name):
        return name


def _deployment_of(template):
    """The logical name of the API's deployment."""
    [name] = _named(template, "AWS::ApiGateway::Deployment")
    return name


class Deployment:
    """A stack on the emulator. Its templates are below `root`."""

    def __init__(self, emulator, packages, root=ROOT, name="stack", change=str):
        self.emulator, self.packages, self.root, self.name = emulator, packages, root, name
        self.change = change
        self.cloudformation, self.s3 = emulator.client("cloudformation"), emulator.client("s3")
        self.lambdas, self.iam = emulator.client("lambda"), emulator.client("iam")
        self.edited, self.template, self.second, self.own = [], None, 0, None

    def create(self, **more):
        from samtranslator.yaml_helper import yaml_parse

        if self.own is None:
            self.s3.create_bucket(Bucket=BUCKET)
            source = self._source()
            self.directories = {name: _kind(it) for name, it in _named(source, "AWS::Serverless::Function").items()}
            self.uris = self._uploaded()
            self.own = self._stack("create_stack", f"{self.name}-own", yaml_parse((ROOT / "template/infra/own.yaml").read_text()), {})
        given = {name: self.own[name] for name in ("SkillSecretArn", "SkillPolicyArn")}
        self.parameters = samconfig(root=self.root) | PARAMETERS | given | more
        self._deploy("create_stack")

    def delete(self):
        """Deletes the stack, and waits for its end. What it retains stays."""
        [stack] = self.cloudformation.describe_stacks(StackName=self.name)["Stacks"]
        self.cloudformation.delete_stack(StackName=self.name)
        self._done(stack["StackId"], ("DELETE_COMPLETE",))
        self.template = None

    def update(self, changed):
        """Deploys the same programs with other values of parameters."""
        before = self.parameters, self.template
        self.parameters = self.parameters | changed
        try:
            self._deploy("update_stack")
        except Failed:
            self.parameters, self.template = before
            raise

    def continue_rollback(self):
        """Ends a rollback that failed, as docs/operations.md describes."""
        self.cloudformation.continue_update_rollback(StackName=self.name)
        self._done(self.name, ("UPDATE_ROLLBACK_COMPLETE",))

    def default(self, name):
        """The default of a parameter."""
        return str(self.template["Parameters"][name]["Default"])

    def another(self, agent):
        """Deploys the template of another agent over this stack."""
        template = self.transformed({}, lambda text: text.replace("LogsOfReference", f"LogsOf{agent}"))
        self._stack("update_stack", self.name, template, self.parameters)

    def next_release(self, variable):
        """Deploys a later release: its template has one more parameter, and sets one more variable."""
        def later(text):
            for old, new in (
                ("  Stage:\n", "  NextRelease: {Type: String, Default: old}\n  Stage:\n"),
                ("        A2A_AUTH: gateway\n", f"        {variable}\n        A2A_AUTH: gateway\n"),
                ('      Release: "', '      Release: "1'),
            ):
                text = text.replace(old, new, 1)
            return text

        self._stack("update_stack", self.name, self.transformed({}, later), self.parameters | {"NextRelease": "new"})

    def _source(self, change=str):
        from samtranslator.yaml_helper import yaml_parse

        return yaml_parse(change(self.change((self.root / "template.yaml").read_text())))

    def transformed(self, changed, change=str):
        """What `sam deploy` does: CloudFormation transforms the template with the values of its parameters."""
        from stack import _ManagedPolicies
        from samtranslator.translator.transform import transform

        source, values, self.edited = self._source(change), self.parameters | changed, []
        self._edit(packages_are_in_s3, source, self.uris)
        template = transform(source, dict(values), _ManagedPolicies())
        self._edit(nested_templates_are_in_s3, template, self._nested)
        for edit in EDITS:
            self._edit(edit, template, values)
        return template

    def _deploy(self, operation):
        # `AlwaysDeploy` names a deployment of the API by its second.
        while int(time.time()) <= self.second:
            time.sleep(0.05)
        before, template = self.template, self.transformed({})
        self.second = int(time.time())
        self.template = template
        self.outputs = self._stack(operation, self.name, template, self.parameters)
        self._describe()
        # API Gateway serves what the newest deployment of the API has seen, and not the API.
        if before is None or _deployment_of(before) != _deployment_of(template):
            self.api = self.resolved(template, template["Resources"]["Api"]["Properties"]["Body"])

    def _stack(self, operation, name, template, parameters):
        """Creates or updates a stack. Returns its outputs."""
        getattr(self.cloudformation, operation)(
            StackName=name,
            # YAML, as `sam deploy` sends it: the AWS CLI prints a template of JSON in another form.
            TemplateURL=self._upload(f"{name}.yaml", f"# Transformed\n{json.dumps(template)}".encode()),
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
        return self._done(name)

    def _edit(self, edit, template, value):
        edit(template, value)
        self.edited.append(edit.__doc__.split("\n")[0])

    def _upload(self, key, content):
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=content)
        return f"{self.emulator.url}/{BUCKET}/{key}"

    def _nested(self, place):
        from samtranslator.yaml_helper import yaml_parse

        template = yaml_parse((self.root / place).read_text())
        if place == "infra/alarms.yaml":
            self._edit(no_metric_math, template, None)
        return self._upload(place, json.dumps(template).encode())

    def _uploaded(self):
        """The objects with the code of the functions. Those with one program share one object."""
        uris, made = {}, {}
        for name, directory in self.directories.items():
            program, package = self.packages(name, directory, self.emulator.folder)
            if program not in made:
                made[program] = self._upload(f"{program}.zip", package()) and f"s3://{BUCKET}/{program}.zip"
            uris[directory] = made[program]
        return uris

    def _done(self, name, ends=("CREATE_COMPLETE", "UPDATE_COMPLETE")):
        while True:
            [stack] = self.cloudformation.describe_stacks(StackName=name)["Stacks"]
            if stack["StackStatus"] in ends:
                return {it["OutputKey"]: it["OutputValue"] for it in stack.get("Outputs", [])}
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
                reasons = [it["ResourceStatusReason"] for it in events if it.get("ResourceStatusReason")]
                raise Failed(f"the stack is {stack['StackStatus']}: {reasons[:5]}")
            time.sleep(0.2)

    def _describe(self):
        found = self.cloudformation.describe_stack_resources(StackName=self.name)["StackResources"]
        self.physical = {it["LogicalResourceId"]: it["PhysicalResourceId"] for it in found}
        # Folder of a function -> its name, its role.
        self.functions = {folder: self.physical[name] for name, folder in self.directories.items()}
        self.roles = {folder: self.physical[f"{name}Role"] for name, folder in self.directories.items()}

    def started(self):
        """Folder of a function -> its name, as the API, a mapping or the schedule starts it."""
        resources = self.template["Resources"]
        sources = [self.resolved(self.template, resources[name]["Properties"]) for name in resources
                   if resources[name]["Type"] in ("AWS::Lambda::EventSourceMapping", "AWS::Events::Rule")]
        text = json.dumps([self.api, sources])
        return {folder: match[0] for folder, name in self.functions.items() if (match := re.search(rf"\b{name}\b(:\w+)?", text))}

    def resolved(self, template, value, changed={}):
        """`value` of a template as CloudFormation resolves it, with the engine of the emulator."""
        from ministack.services.cloudformation import engine

        given = [{"Key": name, "Value": value} for name, value in (self.parameters | changed).items()]
        parameters = engine._resolve_parameters(template, given)
        conditions = engine._evaluate_conditions(template, parameters)
        resources = {name: {"PhysicalResourceId": it, "Attributes": _Attributes(it)} for name, it in self.physical.items()}
        return engine._resolve_refs(value, resources, parameters, conditions, {}, self.name, "")

    def stage(self):
        """The variables of the API's stage, as the emulator resolved them."""
        [stage] = self.emulator.client("apigateway").get_stages(restApiId=self.physical["Api"])["item"]
        return stage["stageName"], stage.get("variables", {})


def dev_packages(binaries):
    """The dev builds in `binaries`. Functions that serve an agent serve the conformance agent."""

    def chosen(_, directory, folder):
        program = "stack-agent" if directory in AGENT else directory
        return program, lambda: stripped(binaries / program, folder)

    return chosen


def built_packages(built):
    """What `sam build` made for each function, in a folder with its logical name."""

    def chosen(name, directory, _):
        return directory, lambda: _zip({"bootstrap": (built / name / "bootstrap").read_bytes()})

    return chosen


def stripped(program, folder):
    """A package of `program`, without its debug information."""
    stripped = folder / f"{program.name}.stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    content = stripped.read_bytes()
    stripped.unlink()
    return _zip({"bootstrap": content})


def _zip(files):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = 0o755 << 16, zipfile.ZIP_DEFLATED
            packed.writestr(entry, content, compresslevel=1)
    return target.getvalue()
