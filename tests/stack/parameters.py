"""Changes each parameter of the template, and reads the new value where it is in force.

A row of `CALLED` is deployed, and read where callers meet it: in the function that the API, a
mapping or the schedule starts, in what API Gateway serves, or in its stage. A row of `EXEMPT`
sets a property that no caller meets. It is read in the transformed template, in which the
changed value must appear.
"""

from world import BASE, DOMAIN, World

URL = f"https://{DOMAIN}{BASE}"
# Parameter: its new value, others that it needs, where it is read, what is found there.
CALLED = {
    "Settings": ('{"A2A_TASK_TTL": "7d"}', {}, "env A2A_SETTINGS", '{"A2A_TASK_TTL": "7d"}'),
    "LogLevel": ("debug", {}, "env A2A_LOG", "info,a2a_lambda=debug"),
    "Metrics": ("off", {}, "env A2A_METRICS", "off"),
    "CorsOrigin": ("https://b.example.com", {}, "env A2A_CORS_ORIGIN", "https://b.example.com"),
    "AccountConcurrency": ("10", {}, "env A2A_CONCURRENCY", "account=10"),
    "GetConcurrency": ("7", {}, "env tasks-get A2A_CONCURRENCY", "tasks-get=7"),
    "StreamConcurrency": ("7", {}, "env rpc A2A_CONCURRENCY", "rpc=7"),
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
    "MemorySize": ("1024", {}, "WorkerFunction MemorySize", "1024"),
    "Layers": ("arn:aws:lambda:x", {}, "RelayFunction Layers", ["arn:aws:lambda:x"]),
    "VpcSubnetIds": ("subnet-a,subnet-b", {"VpcSecurityGroupIds": "sg-a"}, "RpcFunction VpcConfig SubnetIds", ["subnet-a", "subnet-b"]),
    "VpcSecurityGroupIds": ("sg-a", {"VpcSubnetIds": "subnet-a"}, "RpcFunction VpcConfig SecurityGroupIds", ["sg-a"]),
    "KmsKeyArn": ("arn:aws:kms:x", {}, "Table SSESpecification KMSMasterKeyId", "arn:aws:kms:x"),
    "PermissionsBoundaryArn": ("arn:aws:iam::1:policy/x", {}, "SweepFunctionRole PermissionsBoundary", "arn:aws:iam::1:policy/x"),
    "SkillPolicyArn": ("", {}, "WorkerFunctionRole ManagedPolicyArns", None),
    "DetailedApiMetrics": ("on", {}, "ApiStage MethodSettings 0 MetricsEnabled", True),
    "AccessLog": ("on", {}, "ApiStage AccessLogSetting DestinationArn", None),
    "WebAcl": ("arn:aws:wafv2:x", {}, "WebAclAssociation WebACLArn", "arn:aws:wafv2:x"),
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
# A fault in the template: what becomes what, and the parameter that callers then do not meet.
PLANTED = [
    ("    MemorySize: 256\n", "    MemorySize: 256\n    AutoPublishAlias: live\n", "Settings"),
    ("      AlwaysDeploy: true\n", "", "DisableExecuteApi"),
    ("        A2A_LOG: !If [LogsDebug, \"info,a2a_lambda=debug\", !Ref LogLevel]\n", "        A2A_LOG: info\n", "LogLevel"),
]


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
    return _at(deployment.resolved(template, resource["Properties"], changed), steps)


def _called(world, name):
    """What is wrong with a parameter once it is deployed with another value, or None."""
    value, others, place, expected = CALLED[name]
    before = _seen(world, place)
    with world.changed(**others, **{name: value}):
        after = _seen(world, place)
    return f"{name}={value}: {place} was {before}, and is {after}" if after != expected or after == before else None


def _planted(world):
    """Deploys the template with each fault beside the stack. Yields those that no row reports."""
    for number, (good, bad, parameter) in enumerate(PLANTED):
        other = World(world.emulator, world.packages, world.binaries, stack=f"planted{number}", change=lambda it: it.replace(good, bad))
        try:
            seen = _called(other, parameter)
        finally:
            other.stop()
        if seen:
            what = bad.strip().split("\n")[-1].strip() or f"without {good.strip()}"
            print(f"red  {what}: {seen}", flush=True)
        else:
            yield f"{parameter} is met with {bad!r} in place of {good!r}"


def run(world):
    """Tries each parameter, and the planted faults. Returns the number of faults."""
    faults, known = [], set(world.deployment.template["Parameters"])
    faults += [f"no row for the parameter {name}" for name in sorted(known - CALLED.keys() - EXEMPT.keys())]
    faults += [f"a row for {name}, which is no parameter" for name in sorted((CALLED.keys() | EXEMPT.keys()) - known)]
    for name, (_, _, place, _) in CALLED.items():
        if fault := _called(world, name):
            faults.append(fault)
        else:
            print(f"met  {name}: {place}", flush=True)
    for name, (value, others, place, expected) in EXEMPT.items():
        before = _property(world.deployment, place, others)
        after = _property(world.deployment, place, others | {name: value})
        if after == before or expected is not None and after != expected:
            faults.append(f"{name}={value}: {place} was {before}, and is {after}")
        else:
            print(f"sets  {name}: {place}", flush=True)
    faults += _planted(world)
    for fault in faults:
        print(f"FAILED: {fault}")
    print(f"{len(known)} parameters, {len(PLANTED)} planted faults: {len(CALLED)} met where callers meet them, {len(EXEMPT)} set a property")
    return len(faults)
