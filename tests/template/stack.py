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
    "PublicUrl": "https://agent.example.com",
    "AuthorizerFunctionArn": "arn:aws:lambda:us-east-1:111122223333:function:authorizer",
}


class _ManagedPolicies:
    """Replaces the AWS account that the transform would query."""

    def load(self):
        return {"AWSLambdaBasicExecutionRole": BASIC_EXECUTION}


class Stack:
    """The template as written (`source`) and as CloudFormation gets it (`transformed`)."""

    def __init__(self, text=None):
        self.source = yaml_parse(text if text is not None else template_text())
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
        """Every route as transformed: (method, path, operation)."""
        for path, methods in self.transformed["Resources"]["Api"]["Properties"]["Body"]["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def of_type(self, kind):
        """The transformed resources of one type, by logical name."""
        return _of_type(self.transformed, kind)


def _of_type(template, kind):
    return {n: r for n, r in template["Resources"].items() if r["Type"] == kind}


def template_text():
    return (ROOT / "template.yaml").read_text()


def manifest(path="."):
    return tomllib.loads((ROOT / path / "Cargo.toml").read_text())
