"""Which alarm an incident rings: what metric filters select of written lines, and what AWS measures of deployed resources."""

import json
import re

from samtranslator.yaml_helper import yaml_parse
from world import ROOT, check

_TEXT = r'"(?:[^"\\]|\\.)*"'
_CONDITION = rf"\$\.([\w.]+)\s*(!?=|[<>]=?)\s*({_TEXT}|[\w.*+-]+)"


def selects(pattern, line):
    """Whether a filter pattern selects a line (CloudWatch Logs User Guide, "Filter pattern syntax")."""
    if not pattern.startswith("{"):
        terms = re.findall(rf"(-?)({_TEXT}|\S+)", pattern)
        return all(((json.loads(it) if it[0] == '"' else it) in line) != bool(without) for without, it in terms)
    try:
        fields = json.loads(line)
    except ValueError:
        return False
    rest = re.sub(_CONDITION, lambda it: str(_holds(fields, *it.groups())), pattern.strip("{} "))
    rest = rest.replace("&&", " and ").replace("||", " or ")
    if re.sub(r"\b(True|False|and|or)\b|[() ]", "", rest):
        raise ValueError(f"not a condition on a field: {rest} in {pattern}")
    return eval(rest)


def _holds(value, path, operator, wanted):
    """One condition. A text is compared with a text, a number with a number; an absent field with nothing."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", wanted):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        wanted = float(wanted)
    elif not isinstance(value, str):
        return False
    else:
        text = json.loads(wanted) if wanted[0] == '"' else wanted
        value, wanted = bool(re.fullmatch(re.escape(text).replace(r"\*", ".*"), value)), True
    return {"=": value == wanted, "!=": value != wanted, "<": value < wanted, ">": value > wanted,
            "<=": value <= wanted, ">=": value >= wanted}[operator]


class Signals:
    """The alarms of a deployed stack, and the metrics that its filters make of lines."""

    def __init__(self, world):
        self.world, deployment = world, world.deployment
        [nested] = deployment.cloudformation.describe_stacks(StackName=deployment.physical["Alarms"])["Stacks"]
        self.given = {it["ParameterKey"]: it["ParameterValue"] for it in nested["Parameters"]}
        resources = yaml_parse((ROOT / "infra/alarms.yaml").read_text())["Resources"]
        resources = {name: self._filled(it["Properties"]) for name, it in resources.items()}
        self.alarms = {name: it for name, it in resources.items() if "AlarmDescription" in it}
        self.filters = {it["MetricTransformations"][0]["MetricName"]: it for it in resources.values() if "FilterPattern" in it}

    def _filled(self, value):
        """A value of the nested template with the parameters that the deployed stack has."""
        if isinstance(value, list):
            return [self._filled(it) for it in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"Ref"}:
            return self.given.get(value["Ref"], value["Ref"])
        if value.keys() == {"Fn::Sub"}:
            return re.sub(r"\$\{(\w+)\}", lambda it: self.given[it[1]], value["Fn::Sub"])
        return {name: self._filled(it) for name, it in value.items()}

    def rung(self, name, lines=()):
        """Checks that the alarm rings for these lines, or watches deployed resources: AWS measures them, and no emulator does."""
        check(name in self.alarms, f"{name} is an alarm", sorted(self.alarms))
        alarm, counts = self.alarms[name], {}
        [expression] = [it["Expression"] for it in alarm.get("Metrics", ()) if "Expression" in it] or ["only"]
        stats = [it for it in alarm.get("Metrics", ()) if "MetricStat" in it] or [{"Id": "only", "MetricStat": {"Metric": alarm}}]
        for stat in stats:
            metric = stat["MetricStat"]["Metric"]
            if metric["Namespace"].startswith("AWS/"):
                self._measured(metric)
            else:
                pattern = self.filters[metric["MetricName"]]["FilterPattern"]
                counts[stat["Id"]] = sum(selects(pattern, line) for line in lines)
        if counts:
            check(next(iter(counts.values())), f"{name}: a line matches", self.filters, lines[-5:])
            found = eval(expression, {"IF": lambda holds, then, other: then if holds else other, "FILL": max} | counts)
            limit, at = float(alarm["Threshold"]), alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
            check(found > limit or at and found == limit, f"{name} rings", counts, found, limit)

    def _measured(self, metric):
        """Checks that AWS publishes the metric, of resources that are deployed."""
        from checks import PUBLISHED

        place = metric["Namespace"], metric["MetricName"]
        dimensions = {it["Name"]: it["Value"] for it in metric.get("Dimensions", ())}
        check(tuple(dimensions) in PUBLISHED.get(place, ()), "AWS publishes it", place, dimensions)
        for kind, value in dimensions.items():
            check(self._exists(kind, value, dimensions), "it is of a deployed resource", place, kind, value)

    def _exists(self, kind, value, dimensions):
        world = self.world
        physical = {str(it).rsplit("/", 1)[-1] for it in world.deployment.physical.values()}
        if kind == "GlobalSecondaryIndexName":
            table = world.dynamodb.describe_table(TableName=dimensions["TableName"])["Table"]
            return value in {it["IndexName"] for it in table["GlobalSecondaryIndexes"]}
        if kind == "ApiName":
            return value in {it["name"] for it in world.emulator.client("apigateway").get_rest_apis()["items"]}
        if kind == "Stage":
            return value == world.gateway.stage
        return kind in ("StorageType", "Service", "Type", "Resource", "Class") or value in physical
