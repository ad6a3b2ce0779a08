"""The rules of the template. Each check returns a list of faults, empty if there are none.

Linters accept most of these mistakes. So test_template.py also runs every check on a copy
that has the mistake.
"""

import json

STREAMING = {"rpc", "tasks-get", "tasks-stream"}
PUBLIC = {"/.well-known/agent-card.json", "/.well-known/agent.json", "/agent.json"}

_WRITE = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"}
_LIST = {"dynamodb:BatchGetItem"}
_OBJECTS = {"s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"}
_SEEN = {"s3:ListBucket"}
# A turn writes its task and may read the other tasks of its context.
_TURNS = {
    "Table": _WRITE | _LIST,
    "Table/index/GSI1": {"dynamodb:Query"},
    "Bucket": _SEEN,
    "Bucket/v1/*": _OBJECTS,
}
# A call may also delete a push config.
_CALLS = _TURNS | {"Table": _TURNS["Table"] | {"dynamodb:DeleteItem"}}
# A message can name a file that was uploaded separately.
_TAKEN = {"Bucket/up/*": {"s3:GetObject"}}
# The sweep lists objects of tasks only, below their own prefix.
_TIDY = {"s3:prefix": "v1/*"}
_TAKE = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
_RECEIVE = _TAKE | {"sqs:ChangeMessageVisibility"}
# Actions that only the event source mapping calls, with the function's role.
POLLING = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
    "sqs:DeleteMessage",
    "sqs:ReceiveMessage",
}

# `erase-tenant` reads the whole table, with an operator's rights. No function may.
OPERATOR = {"dynamodb:BatchWriteItem", "dynamodb:Scan"}
# The actions of each role, by resource. Nothing else may be granted.
RIGHTS = {
    "agent-card": {},
    # A presigned URL grants the right to upload a file.
    # A caller deletes tasks and contexts here, and their uploads with them.
    "tasks-send": _CALLS
    | {
        "Bucket/v1/*": _OBJECTS | {"s3:DeleteObject"},
        "Bucket/up/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
    },
    "tasks-get": {
        "Table": {"dynamodb:GetItem", "dynamodb:Query"} | _LIST,
        "Table/index/GSI1": {"dynamodb:Query"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:GetObject"},
    },
    "tasks-stream": _TURNS | _TAKEN,
    "rpc": _CALLS | _TAKEN,
    # It forwards records of the stream, and can neither read nor remove anything.
    "relay": {
        "Table.StreamArn": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "Table/stream/*": {"dynamodb:ListStreams"},
        "WorkQueue": {"sqs:SendMessage"},
        "PushQueue": {"sqs:SendMessage"},
        "RelayFailures": {"sqs:SendMessage"},
    },
    "worker": _TURNS | {"WorkQueue": _RECEIVE},
    # It calls foreign servers: of a task it writes only its cursor, and nothing in the bucket.
    "push": {
        "Table": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:GetObject"},
        # After a failure it sends a message for later.
        "PushQueue": _TAKE | {"sqs:SendMessage"},
    },
    "sweep": {
        # It removes expired state.
        "Table": _WRITE | _LIST | {"dynamodb:DeleteItem"},
        "Table/index/GSI2": {"dynamodb:Query"},
        # The number of waiting turns decides how many it sends again.
        "WorkQueue": {"sqs:GetQueueAttributes", "sqs:SendMessage"},
        "PushQueue": {"sqs:SendMessage"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
        "Bucket/up/*": {"s3:DeleteObject"},
    },
}
# The sweep may list objects below a prefix. A read names no prefix: without IfExists it would get 403 instead of 404
# for a missing object.
LISTS = {"sweep": {"StringLikeIfExists": _TIDY}}
# The images that start the relay: of tasks that ask for a worker, and of tasks with an event for webhooks.
FORWARDED = [
    {"dynamodb": {"Keys": {"SK": {"S": ["META"]}}, "NewImage": {name: {"N": [{"exists": True}]}}}}
    for name in ("dispatch", "notify")
]
# The settings that name the resources of a function. All functions have the others.
_CALLED = {"A2A_TABLE", "A2A_BUCKET", "A2A_SECRET_KEY"}
NAMED = {
    "agent-card": set(),
    "tasks-send": _CALLED,
    "tasks-get": _CALLED,
    "tasks-stream": _CALLED,
    "rpc": _CALLED,
    "relay": {"A2A_WORK_QUEUE_URL", "A2A_PUSH_QUEUE_URL"},
    "worker": {"A2A_TABLE", "A2A_BUCKET", "A2A_WORK_QUEUE_URL", "A2A_SECRET_KEY"},
    "push": {"A2A_TABLE", "A2A_BUCKET", "A2A_PUSH_QUEUE_URL", "A2A_SECRET_KEY"},
    "sweep": {"A2A_TABLE", "A2A_BUCKET", "A2A_WORK_QUEUE_URL", "A2A_PUSH_QUEUE_URL"},
}
# Seconds. API Gateway waits 29 for a buffered response; a stream and a turn may use Lambda's maximum.
TIMEOUTS = {
    "agent-card": 10,
    "tasks-send": 29,
    "tasks-get": 900,
    "tasks-stream": 900,
    "rpc": 900,
    "relay": 60,
    "worker": 900,
    "push": 60,
    "sweep": 300,
}


def integrations(stack):
    """The integration of each route streams if its function streams, else it buffers."""
    wrong = []
    owners = {(method, path): directory for directory, method, path, _ in stack.events()}
    names = {directory: name for name, directory in stack.functions.items()}
    seen = set()
    for method, path, operation in stack.operations():
        directory = owners.get((method, path))
        if directory is None:
            wrong.append(f"{method} {path}: no function declares it")
            continue
        seen.add((method, path))
        found = operation["x-amazon-apigateway-integration"]
        uri = found["uri"]["Fn::Sub"]
        target = f"functions/${{{names[directory]}Aliaslive}}/"
        if directory in STREAMING:
            version, suffix, mode, timeout = "2021-11-15", "/response-streaming-invocations", "STREAM", 900_000
        else:
            version, suffix, mode, timeout = "2015-03-31", "/invocations", None, None
        if f"path/{version}/{target}" not in uri or not uri.endswith("}" + suffix):
            wrong.append(f"{method} {path}: enters {uri}")
        if found.get("responseTransferMode") != mode:
            wrong.append(f"{method} {path}: responseTransferMode {found.get('responseTransferMode')}")
        if found.get("timeoutInMillis") != timeout:
            wrong.append(f"{method} {path}: timeoutInMillis {found.get('timeoutInMillis')}")
    return wrong + [f"{m} {p}: dropped by the transform" for m, p in owners.keys() - seen]


def path_parts(stack):
    """API Gateway refuses a part that mixes `{}` with text, and two variables side by side."""
    wrong, variables = [], {}
    for _, _, path, _ in stack.events():
        parts = path.strip("/").split("/")
        for at, part in enumerate(parts):
            if "{" not in part and "}" not in part:
                continue
            name = part[1:-1]
            if part != "{" + name + "}" or not name.replace("_", "").isalnum():
                wrong.append(f"{path}: `{part}` mixes a variable with text")
            parent = "/".join(parts[:at])
            if variables.setdefault(parent, part) != part:
                wrong.append(f"/{parent}: `{part}` beside `{variables[parent]}`")
    return sorted(set(wrong))


def tenant_shadows(stack, reserved):
    """A static first part beside `{tenant}` must be a word that is not a valid tenant."""
    first = {path.split("/")[1] for _, _, path, _ in stack.events()}
    static = {part for part in first if part and not part.startswith("{")}
    return sorted(f"`{part}` is not a reserved word" for part in static - set(reserved))


def public_paths(stack):
    """Only the card is public; every other route has the authorizer."""
    wrong = []
    for method, path, operation in stack.operations():
        expected = [{"NONE": []}] if path in PUBLIC and method == "GET" else [{"Caller": []}]
        if operation.get("security") != expected:
            wrong.append(f"{method} {path}: security {operation.get('security')}")
    return wrong


def watch_router(stack, cargo):
    """`cargo lambda watch` serves exactly the routes of the template, per method."""
    router = cargo["workspace"]["metadata"]["lambda"]["watch"]["router"]
    watched = {
        (path, entry["method"], entry["function"]) for path, entries in router.items() for entry in entries
    }
    declared = {(path, method, directory) for directory, method, path, _ in stack.events()}
    return [f"only in Cargo.toml: {r}" for r in sorted(watched - declared)] + [
        f"only in template.yaml: {r}" for r in sorted(declared - watched)
    ]


def rights(stack):
    """Each role has exactly the actions of its row, on exactly those resources."""
    wrong = []
    for name, directory in stack.functions.items():
        role = stack.transformed["Resources"][f"{name}Role"]["Properties"]
        managed = role.get("ManagedPolicyArns", [])
        if [m for m in managed if not m.endswith(":policy/service-role/AWSLambdaBasicExecutionRole")]:
            wrong.append(f"{directory}: managed policies {managed}")
        granted = {}
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                listing = _list(statement["Action"]) == ["s3:ListBucket"]
                if statement.get("Condition") != (LISTS.get(directory) if listing else None):
                    wrong.append(f"{directory}: unexpected condition of {statement}")
                if statement["Effect"] != "Allow" or set(statement) - {"Effect", "Action", "Resource", "Condition"}:
                    wrong.append(f"{directory}: unexpected statement {statement}")
                for resource in _list(statement["Resource"]):
                    granted.setdefault(_place(resource), set()).update(_list(statement["Action"]))
        reads = any("s3:GetObject" in actions for actions in granted.values())
        if reads and "s3:ListBucket" not in granted.get("Bucket", set()):
            wrong.append(f"{directory}: gets 403 instead of 404 for a missing object")
        if granted != RIGHTS.get(directory):
            wrong.append(f"{directory}: is granted {granted}")
    return wrong


def settings(stack):
    """Environment and packaging of every function."""
    wrong = []
    for name, function in stack.of_type("AWS::Lambda::Function").items():
        properties = function["Properties"]
        variables = properties["Environment"]["Variables"]
        directory = stack.functions[name]
        if variables.get("A2A_AUTH") != "gateway":
            wrong.append(f"{directory}: A2A_AUTH is {variables.get('A2A_AUTH')}")
        if "AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH" not in variables:
            wrong.append(f"{directory}: its paths would contain the stage")
        named = set().union(*NAMED.values()) & variables.keys()
        if named != NAMED.get(directory):
            wrong.append(f"{directory}: has {sorted(named)}")
        if properties["Architectures"] != ["arm64"] or properties["Runtime"] != "provided.al2023":
            wrong.append(f"{directory}: {properties['Architectures']} {properties['Runtime']}")
        if properties["Handler"] != "bootstrap":
            wrong.append(f"{directory}: handler {properties['Handler']}")
        if properties["LoggingConfig"]["LogFormat"] != "JSON":
            wrong.append(f"{directory}: logs are not JSON")
        if properties["Timeout"] != TIMEOUTS.get(directory):
            wrong.append(f"{directory}: timeout {properties['Timeout']}")
        written = stack.source["Resources"][name]["Properties"]
        # Without it a change of a setting alone publishes no version, and has no effect.
        if written.get("AutoPublishAliasAllProperties") is not True:
            wrong.append(f"{directory}: a changed setting would not be published")
        uri = written["CodeUri"]
        if uri != f"target/lambda/{directory}/":
            wrong.append(f"{directory}: CodeUri {uri}")
    return wrong


def queues(stack):
    """Every queue has an alarm. A queue with a consumer has dead letters and a long enough visibility timeout."""
    wrong = []
    found = stack.of_type("AWS::SQS::Queue")
    watched = {}
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        properties = alarm["Properties"]
        for dimension in properties["Dimensions"]:
            if properties["Namespace"] == "AWS/SQS" and dimension["Name"] == "QueueName":
                watched[dimension["Value"]["Fn::GetAtt"][0]] = properties
    for name, queue in found.items():
        properties = queue["Properties"]
        alarm = watched.get(name)
        if alarm is None:
            wrong.append(f"{name}: no alarm")
            continue
        takers = [m for m in _mappings(stack) if m["EventSourceArn"] == {"Fn::GetAtt": [name, "Arn"]}]
        if not takers:
            # It has no consumer: its messages are for the operator.
            if alarm["MetricName"] != "ApproximateNumberOfMessagesVisible" or alarm["Threshold"] != 0:
                wrong.append(f"{name}: its alarm waits for more than one message")
            continue
        letters = properties.get("RedrivePolicy", {})
        target = letters.get("deadLetterTargetArn", {}).get("Fn::GetAtt", [None])[0]
        if target not in found or target == name:
            wrong.append(f"{name}: no queue for dead letters")
        # The age of a message keeps counting in the dead-letter queue.
        elif found[target]["Properties"]["MessageRetentionPeriod"] <= properties["MessageRetentionPeriod"]:
            wrong.append(f"{target}: dead letters expire on arrival")
        if "FifoQueue" in properties:
            wrong.append(f"{name}: FIFO queues have no fairness between tenants")
        if letters.get("maxReceiveCount", 0) < 100:
            wrong.append(f"{name}: a message that meets a live lease becomes a dead letter")
        for taker in takers:
            timeout = stack.transformed["Resources"][_function(taker)]["Properties"]["Timeout"]
            if properties["VisibilityTimeout"] < timeout:
                wrong.append(f"{name}: a message becomes visible again while its worker runs")
    return wrong


def schedules(stack):
    """An alarm reports failures of functions that the schedule or the stream starts, because no client notices them."""
    wrong = []
    watched = {}
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        properties = alarm["Properties"]
        for dimension in properties["Dimensions"]:
            if dimension["Name"] == "FunctionName" and properties["Namespace"] == "AWS/Lambda":
                watched[dimension["Value"]["Ref"], properties["MetricName"]] = properties
    for name, resource in stack.source["Resources"].items():
        events = resource.get("Properties", {}).get("Events", {}).values()
        if all(event["Type"] != "Schedule" for event in events):
            continue
        # A timeout counts as an error.
        alarm = watched.get((name, "Errors"))
        if alarm is None:
            wrong.append(f"{name}: no alarm reports its failure")
        elif alarm["Threshold"] != 0 or alarm["Statistic"] != "Sum":
            wrong.append(f"{name}: its alarm waits for more than one error")
    behind = watched.get(("RelayFunction", "IteratorAge"), {})
    # In milliseconds. Far less than the day after which the relay gives up a record.
    if behind.get("Statistic") != "Maximum" or not 0 < behind.get("Threshold", 0) <= 3_600_000:
        wrong.append("relay: no alarm reports that it is behind")
    return wrong


def mappings(stack):
    """The functions that the stream, the queues and the schedule start, and their properties."""
    wrong = []
    wanted = {
        "relay": {
            "EventSourceArn": {"Fn::GetAtt": ["Table", "StreamArn"]},
            "StartingPosition": "TRIM_HORIZON",
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "BisectBatchOnFunctionError": True,
            # By age: for as long as the stream keeps a record.
            "MaximumRetryAttempts": -1,
            "MaximumRecordAgeInSeconds": 86400,
            "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["RelayFailures", "Arn"]}}},
        },
        "worker": {
            "EventSourceArn": {"Fn::GetAtt": ["WorkQueue", "Arn"]},
            "BatchSize": 1,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        },
        "push": {
            "EventSourceArn": {"Fn::GetAtt": ["PushQueue", "Arn"]},
            "BatchSize": 1,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        },
    }
    found = {}
    for mapping in _mappings(stack):
        # The alias, so that a deployment shifts background work like calls.
        if not mapping["FunctionName"].get("Ref", "").endswith("Aliaslive"):
            wrong.append(f"{mapping['FunctionName']}: bypasses the alias")
            continue
        found[stack.functions[_function(mapping)]] = mapping
    for directory, properties in wanted.items():
        for key, value in properties.items():
            if found.get(directory, {}).get(key) != value:
                wrong.append(f"{directory}: {key} is {found.get(directory, {}).get(key)}")
    wrong += [f"{directory}: has an unexpected event source" for directory in found.keys() - wanted.keys()]
    relay = found.get("relay", {})
    patterns = [json.loads(f["Pattern"]) for f in relay.get("FilterCriteria", {}).get("Filters", [])]
    if patterns != FORWARDED:
        wrong.append(f"relay: is started for {patterns}")
    for directory in ("worker", "push"):
        if "MaximumConcurrency" not in found.get(directory, {}).get("ScalingConfig", {}):
            wrong.append(f"{directory}: no concurrency limit")
    rules = [r["Properties"] for r in stack.of_type("AWS::Events::Rule").values()]
    started = [(r["ScheduleExpression"], [t["Arn"]["Ref"] for t in r["Targets"]]) for r in rules]
    if started != [({"Ref": "SweepInterval"}, ["SweepFunctionAliaslive"])]:
        wrong.append(f"sweep: started by {started}")
    return wrong


def state(stack):
    """Data outlives the stack and is closed to the public."""
    wrong = []
    resources = stack.transformed["Resources"]
    for name in ("Table", "Bucket", "SecretKey"):
        if resources[name].get("DeletionPolicy") not in ("Retain", "RetainExceptOnCreate"):
            wrong.append(f"{name}: is deleted with the stack")
        if resources[name].get("UpdateReplacePolicy") != "Retain":
            wrong.append(f"{name}: is deleted when replaced")
    table = resources["Table"]["Properties"]
    expected = {
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": {"Fn::If": ["IsProd", True, False]},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
        "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
    }
    wrong += [f"Table: {key} is {table.get(key)}" for key, value in expected.items() if table.get(key) != value]
    bucket = resources["Bucket"]["Properties"]
    if set(bucket["PublicAccessBlockConfiguration"].values()) != {True}:
        wrong.append("Bucket: can be made public")
    expiring = [r.get("Prefix") for r in bucket["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in r]
    if expiring != ["up/", "erased/"]:
        wrong.append(f"Bucket: objects expire below {expiring}")
    # Point-in-time recovery goes back 35 days.
    versions = {
        r.get("Prefix"): r["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for r in bucket["LifecycleConfiguration"]["Rules"]
        if "NoncurrentVersionExpiration" in r
    }
    if bucket.get("VersioningConfiguration") != {"Status": "Enabled"} or versions != {"v1/": 36, "up/": 1}:
        wrong.append(f"Bucket: objects of a restored table would be missing ({versions})")
    if resources["Api"]["Properties"]["EndpointConfiguration"]["Types"] != ["REGIONAL"]:
        wrong.append("Api: an edge-optimized API cuts a silent stream after 30 s")
    return wrong


def table_shape(table):
    """The keys of the table, under the empty name, and of its indexes, with their projected attributes."""
    types = {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]}
    owners = {"": table} | {index["IndexName"]: index for index in table["GlobalSecondaryIndexes"]}
    shape = {}
    for name, owner in owners.items():
        keys = {key["KeyType"]: key["AttributeName"] for key in owner["KeySchema"]}
        carried = owner.get("Projection", {}).get("NonKeyAttributes", [])
        shape[name] = ([(keys[k], types[keys[k]]) for k in ("HASH", "RANGE")], carried)
    return shape


def _mappings(stack):
    return [m["Properties"] for m in stack.of_type("AWS::Lambda::EventSourceMapping").values()]


def _function(mapping):
    """The logical name of the function that a mapping starts."""
    return mapping["FunctionName"]["Ref"].removesuffix("Aliaslive")


def _list(value):
    return value if isinstance(value, list) else [value]


def _place(resource):
    """`Table`, `Table/index/GSI1`, `Bucket/v1/*`; anything else as it is."""
    if isinstance(resource, dict) and "Fn::GetAtt" in resource:
        name, attribute = resource["Fn::GetAtt"]
        return name if attribute == "Arn" else f"{name}.{attribute}"
    if isinstance(resource, dict) and "Fn::Sub" in resource:
        return resource["Fn::Sub"].replace(".Arn}", "}").replace("${", "").replace("}", "")
    return str(resource)
