"""Reads the template, transforms it as SAM does, and offers both forms to the checks."""

import copy
import logging
import os
import pathlib
import tomllib

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

# The transform logs its feature toggles and metrics.
logging.disable(logging.WARNING)

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASIC_EXECUTION = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
PARAMETERS = {
    "AuthorizerFunctionArn": "arn:aws:lambda:us-east-1:111122223333:function:authorizer",
}


class _ManagedPolicies:
    """Replaces the AWS account that the transform would query."""

    def load(self):
        return {"AWSLambdaBasicExecutionRole": BASIC_EXECUTION}


class Stack:
    """The template as written (`source`) and as CloudFormation gets it (`transformed`)."""

    def __init__(self, text=None, alarms=None):
        self.source = yaml_parse(text if text is not None else template_text())
        self.nested_alarms = yaml_parse(alarms if alarms is not None else alarms_text())
        local = copy.deepcopy(self.source)
        for function in _of_type(local, "AWS::Serverless::Function").values():
            function["Properties"]["CodeUri"] = "s3://bucket/key"
        self.transformed = transform(local, dict(PARAMETERS), _ManagedPolicies())
        # Logical name -> directory below functions/.
        self.functions = {
            name: function["Properties"]["CodeUri"].rstrip("/").rsplit("/", 1)[-1]
            for name, function in _of_type(self.source, "AWS::Serverless::Function").items()
        }

    def events(self):
        """Every route as written: (directory, method, path, properties)."""
        for name, directory in self.functions.items():
            for event in self.source["Resources"][name]["Properties"].get("Events", {}).values():
                properties = event["Properties"]
                if event["Type"] == "Api":
                    yield directory, properties["Method"].upper(), properties["Path"], properties

    def operations(self):
        """Every route of a function as transformed: (method, path, operation)."""
        for path, methods in self.paths().items():
            for method, operation in methods.items():
                if method != "options":
                    yield method.upper(), path, operation

    def paths(self):
        """The transformed paths of the API, with the operations of their methods."""
        return self.transformed["Resources"]["Api"]["Properties"]["Body"]["paths"]

    def alarms(self):
        """The properties of all alarms by name, those of the nested stack with the values of its parameters."""
        kind = "AWS::CloudWatch::Alarm"
        given = self.transformed["Resources"]["Alarms"]["Properties"]["Parameters"]
        nested = {n: _filled(r["Properties"], given) for n, r in _of_type(self.nested_alarms, kind).items()}
        return {n: r["Properties"] for n, r in self.of_type(kind).items()} | nested

    def of_type(self, kind):
        """The transformed resources of one type, by logical name."""
        return _of_type(self.transformed, kind)


def _of_type(template, kind):
    return {n: r for n, r in template["Resources"].items() if r["Type"] == kind}


def _filled(value, given):
    """`value` with each reference to a parameter of a nested stack replaced by what the stack gets."""
    if isinstance(value, list):
        return [_filled(one, given) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        return given.get(value["Ref"], value)
    if set(value) == {"Fn::Sub"} and isinstance(value["Fn::Sub"], str):
        return {"Fn::Sub": value["Fn::Sub"].replace("${StackName}", "${AWS::StackName}")}
    return {key: _filled(one, given) for key, one in value.items()}


def alarms_text():
    return (ROOT / "infra/alarms.yaml").read_text()


def template_text():
    return (ROOT / "template.yaml").read_text()


def manifest(path="."):
    return tomllib.loads((ROOT / path / "Cargo.toml").read_text())
