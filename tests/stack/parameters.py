"""Changes each parameter of the template, and reads the new value where it is in force.

A row of `CALLED` is deployed, and read where callers meet it: in the function that the API, a
mapping or the schedule starts, in what API Gateway serves, or in its stage. A row of `EXEMPT`
sets a property that no caller meets. It is read in the transformed template, in which the
changed value must appear.
"""

from world import BASE, DOMAIN

URL = f"https://{DOMAIN}{BASE}"
# Parameter: its new value, others that it needs, where it is read, what is found there.
CALLED = {
    "Settings": ('{"A2A_TASK_TTL": "7d"}', {}, "env A2A_SETTINGS", '{"A2A_TASK_TTL": "7d"}'),
    "LogLevel": ("debug", {}, "env A2A_LOG", "info,a2a_lambda=debug"),
    "Metrics": ("off", {}, "env A2A_METRICS", "off"),
    "CorsOrigin": ("https://b.example.com", {}, "env A2A_CORS_ORIGIN", "https://b.example.com"),
    "AccountConcurrency": ("10", {}, "env A2A_CONCURRENCY", "10"),
    "GetConcurrency": ("7", {}, "env tasks-get A2A_CONCURRENCY", "7"),
    "StreamConcurrency": ("7", {}, "env rpc A2A_CONCURRENCY", "7"),
    "SkillSecretArn": ("", {}, "env A2A_SKILL_SECRET", ""),
    "FirstKey": ("off", {}, "env authorizer A2A_FIRST_KEY", ""),
    "PublicUrl": (URL, {}, "stage publicUrl", URL),
    "DisableExecuteApi": ("on", {"PublicUrl": URL}, "api servers 0 x-amazon-apigateway-endpoint-configuration disableExecuteApiEndpoint", True),
    "ReauthorizeEvery": ("7", {}, "api components securitySchemes Caller x-amazon-apigateway-authorizer authorizerResultTtlInSeconds", "7"),
    "AuthorizerFunctionArn": (
        "arn:aws:lambda:us-east-1:000000000000:function:own", {},
        "api components securitySchemes Caller x-amazon-apigateway-authorizer authorizerUri",
        "arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/arn:aws:lambda:us-east-1:000000000000:function:own/invocations",
    ),
}
# Parameter: its new value, others that it needs, the property, what it then is.
EXEMPT = {
    "Stage": ("prod", {}, "ApiStage StageName", "prod"),
    "LogRetentionDays": ("7", {}, "LogsOfReference RetentionInDays", "7"),
    "Tracing": ("Active", {}, "WorkerFunction TracingConfig Mode", "Active"),
    "SkillPolicyArn": ("", {}, "WorkerFunctionRole ManagedPolicyArns", 2),
    "DetailedApiMetrics": ("on", {}, "ApiStage MethodSettings 0 MetricsEnabled", True),
    "AccessLog": ("on", {}, "ApiStage AccessLogSetting DestinationArn", None),
    "WebAclArn": ("arn:aws:wafv2:x", {}, "WebAclAssociation WebACLArn", "arn:aws:wafv2:x"),
    "Dashboard": ("off", {}, "DashboardOfAll Condition", False),
    "BucketAlarmGigabytes": ("7", {}, "Alarms Parameters BucketAlarmGigabytes", "7"),
    "ApiRatePerSecond": ("7", {}, "ApiStage MethodSettings 0 ThrottlingRateLimit", "7"),
    "ApiBurst": ("7", {}, "ApiStage MethodSettings 0 ThrottlingBurstLimit", "7"),
    "TableMaxReadUnits": ("7", {}, "Table OnDemandThroughput MaxReadRequestUnits", "7"),
    "TableMaxWriteUnits": ("7", {}, "Table OnDemandThroughput MaxWriteRequestUnits", "7"),
    "CardConcurrency": ("7", {}, "AgentCardFunction ReservedConcurrentExecutions", "7"),
    "SendConcurrency": ("7", {}, "TasksSendFunction ReservedConcurrentExecutions", "7"),
    "WorkerConcurrency": ("7", {}, "WorkerMapping ScalingConfig MaximumConcurrency", 7),
    "PushConcurrency": ("7", {}, "PushMapping ScalingConfig MaximumConcurrency", 7),
    "SweepInterval": ("rate(7 minutes)", {}, "SweepFunctionInterval ScheduleExpression", "rate(7 minutes)"),
    "AlarmEmail": ("b@example.com", {}, "AlarmTopic Subscription 0 Endpoint", "b@example.com"),
    "AlarmTopicArn": ("arn:aws:sns:x", {"AlarmEmail": ""}, "Alarms Parameters AlarmTopicArn", "arn:aws:sns:x"),
}


def _at(value, steps):
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value.get(step)
        if value is None:
            return None
    return value


def _seen(world, place):
    """The value that callers meet at a place of `CALLED`."""
    kind, *steps = place.split(" ")
    if kind == "api":
        return _at(world.deployment.api, steps)
    if kind == "stage":
        return _at(world.deployment.stage()[1], steps)
    folders = world.deployment.functions if len(steps) == 1 else [steps[0]]
    found = [world.variables(folder) for folder in folders]
    values = {variables[steps[-1]] for variables in found if steps[-1] in variables}
    return next(iter(values)) if len(values) == 1 else sorted(values)


def _property(deployment, place, changed):
    """The value of a property of the transformed template, with these values of parameters."""
    name, *steps = place.split(" ")
    template = deployment.transformed(changed)
    resource = template["Resources"][name]
    if steps == ["Condition"]:
        return deployment.resolved(template, {"Condition": resource["Condition"]}, changed)
    found = _at(deployment.resolved(template, resource["Properties"], changed), steps)
    return len(found) if isinstance(found, list) else found


def run(world):
    """Tries each parameter. Returns the number of faults."""
    faults, known = [], set(world.deployment.template["Parameters"])
    faults += [f"no row for the parameter {name}" for name in sorted(known - CALLED.keys() - EXEMPT.keys())]
    faults += [f"a row for {name}, which is no parameter" for name in sorted((CALLED.keys() | EXEMPT.keys()) - known)]
    for name, (value, others, place, expected) in CALLED.items():
        before = _seen(world, place)
        with world.changed(**others, **{name: value}):
            after = _seen(world, place)
        if after != expected or after == before:
            faults.append(f"{name}={value}: {place} was {before}, and is {after}")
        else:
            print(f"met  {name}: {place}", flush=True)
    for name, (value, others, place, expected) in EXEMPT.items():
        before = _property(world.deployment, place, others)
        after = _property(world.deployment, place, others | {name: value})
        if after == before or expected is not None and after != expected:
            faults.append(f"{name}={value}: {place} was {before}, and is {after}")
        else:
            print(f"sets  {name}: {place}", flush=True)
    for fault in faults:
        print(f"FAILED: {fault}")
    print(f"{len(known)} parameters: {len(CALLED)} met where callers meet them, {len(EXEMPT)} set a property")
    return len(faults)
