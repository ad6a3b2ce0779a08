"""The rules of the template. Each check returns what is wrong; nothing is right.

Linters accept most of these mistakes, so every check is also run on a copy that
has the mistake (test_template.py).
"""

import json

STREAMING = {"rpc", "tasks-get", "tasks-stream"}
PUBLIC = {"/.well-known/agent-card.json", "/.well-known/agent.json", "/agent.json"}

_WRITE = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"}
_LIST = {"dynamodb:BatchGetItem"}
# Whoever replaces content that is an object removes the one it replaced.
_OBJECTS = {"s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"}
_SEEN = {"s3:ListBucket"}
# A turn writes its task and may read the other tasks of its context.
_TURNS = {
    "Table": _WRITE | _LIST,
    "Table/index/GSI1": {"dynamodb:Query"},
    "Bucket": _SEEN,
    "Bucket/v1/*": _OBJECTS,
}
# A call may remove a webhook too.
_CALLS = _TURNS | {"Table": _TURNS["Table"] | {"dynamodb:DeleteItem"}}
# A message can name a file that was sent by itself.
_TAKEN = {"Bucket/up/*": {"s3:GetObject"}}
# What is left of tasks is listed below their own prefix only.
_TIDY = {"s3:prefix": "v1/*"}
_TAKE = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
_RECEIVE = _TAKE | {"sqs:ChangeMessageVisibility"}
# What only the mapping of a queue or a stream calls, in the name of the function.
POLLING = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ReceiveMessage",
}

# An operator erases a tenant by reading the whole table. No function may.
OPERATOR = {"dynamodb:BatchWriteItem", "dynamodb:Scan"}
# What each role may do, and on what. Nothing else may be granted.
RIGHTS = {
    "agent-card": {},
    # The right to send a file is handed on in a URL.
    "tasks-send": _CALLS | {"Bucket/up/*": {"s3:GetObject", "s3:PutObject"}},
    "tasks-get": {
        "Table": {"dynamodb:GetItem", "dynamodb:Query"} | _LIST,
        "Table/index/GSI1": {"dynamodb:Query"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:GetObject"},
    },
    "tasks-stream": _TURNS | _TAKEN,
    "rpc": _CALLS | _TAKEN,
    "relay": {
        "Table": {"dynamodb:GetItem"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:DeleteObject"},
        "Table.StreamArn": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "Table/stream/*": {"dynamodb:ListStreams"},
        "WorkQueue": {"sqs:SendMessage"},
        "PushQueue": {"sqs:SendMessage"},
        "RelayFailures": {"sqs:SendMessage"},
    },
    "worker": _TURNS | {"WorkQueue": _RECEIVE},
    # It calls strangers: it writes nothing of a task but its cursor, and nothing in the bucket.
    "push": {
        "Table": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:GetObject"},
        # A failure rings again later.
        "PushQueue": _TAKE | {"sqs:SendMessage"},
    },
    "sweep": {
        # It removes state whose time is up.
        "Table": _WRITE | _LIST | {"dynamodb:DeleteItem"},
        "Table/index/GSI1": {"dynamodb:Query"},
        "Table/index/GSI2": {"dynamodb:Query"},
        "PushQueue": {"sqs:SendMessage"},
        "Bucket": _SEEN,
        "Bucket/v1/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
    },
}
# The roles that remove objects may list them. The one which reads objects as well names no prefix then, and is told
# "denied" of one that is gone unless the condition lets that pass.
LISTS = {"relay": {"StringLike": _TIDY}, "sweep": {"StringLikeIfExists": _TIDY}}
# The images which the relay is started for: of tasks, when they ask for a worker, and when webhooks
# want to hear of them.
FORWARDED = [
    {"dynamodb": {"Keys": {"SK": {"S": ["META"]}}, "NewImage": {name: {"N": [{"exists": True}]}}}}
    for name in ("dispatch", "notify")
]
# And tasks which the table lets go.
EXPIRED = {
    "eventName": ["REMOVE"],
    "userIdentity": {"principalId": ["dynamodb.amazonaws.com"]},
    "dynamodb": {"Keys": {"SK": {"S": ["META"]}}},
}
# The settings that name what a function may touch. The others are for all.
_CALLED = {"A2A_TABLE", "A2A_BUCKET", "A2A_SECRET_KEY"}
NAMED = {
    "agent-card": set(),
    "tasks-send": _CALLED,
    "tasks-get": _CALLED,
    "tasks-stream": _CALLED,
    "rpc": _CALLED,
    "relay": {"A2A_TABLE", "A2A_BUCKET", "A2A_WORK_QUEUE_URL", "A2A_PUSH_QUEUE_URL"},
    "worker": {"A2A_TABLE", "A2A_BUCKET", "A2A_WORK_QUEUE_URL"},
    "push": {"A2A_TABLE", "A2A_BUCKET", "A2A_PUSH_QUEUE_URL", "A2A_SECRET_KEY"},
    "sweep": {"A2A_TABLE", "A2A_BUCKET", "A2A_PUSH_QUEUE_URL"},
}
# Seconds. The gateway waits 29 for a buffered answer; a stream and a turn may take all there is.
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
    """Each route enters its function the way that function answers."""
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
    """A static first part beside `{tenant}` has to be a word no tenant can have."""
    first = {path.split("/")[1] for _, _, path, _ in stack.events()}
    static = {part for part in first if part and not part.startswith("{")}
    return sorted(f"`{part}` is not a reserved word" for part in static - set(reserved))


def public_paths(stack):
    """Only the card can be read without the authorizer."""
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
            wrong.append(f"{directory}: is told `denied` of an object that is gone")
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
            wrong.append(f"{directory}: the stage would stand in its paths")
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
        # Without it a change of a setting alone publishes no version, and so does nothing.
        if written.get("AutoPublishAliasAllProperties") is not True:
            wrong.append(f"{directory}: a changed setting would not be published")
        uri = written["CodeUri"]
        if uri != f"target/lambda/{directory}/":
            wrong.append(f"{directory}: CodeUri {uri}")
    return wrong


def queues(stack):
    """A queue somebody waits behind has dead letters, every queue an alarm, and none hides a message too short."""
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
            # Nobody empties it, so what lies there is for the operator.
            if alarm["MetricName"] != "ApproximateNumberOfMessagesVisible" or alarm["Threshold"] != 0:
                wrong.append(f"{name}: its alarm waits for more than one message")
            continue
        letters = properties.get("RedrivePolicy", {})
        target = letters.get("deadLetterTargetArn", {}).get("Fn::GetAtt", [None])[0]
        if target not in found or target == name:
            wrong.append(f"{name}: no queue for dead letters")
        # The age of a message goes on counting there.
        elif found[target]["Properties"]["MessageRetentionPeriod"] <= properties["MessageRetentionPeriod"]:
            wrong.append(f"{target}: forgets letters as soon as they are dead")
        if "FifoQueue" in properties:
            wrong.append(f"{name}: is fair to no tenant")
        if letters.get("maxReceiveCount", 0) < 100:
            wrong.append(f"{name}: a message that bounces off a lease counts as poison")
        for taker in takers:
            timeout = stack.transformed["Resources"][_function(taker)]["Properties"]["Timeout"]
            if properties["VisibilityTimeout"] < timeout:
                wrong.append(f"{name}: a message is shown again while its worker runs")
    return wrong


def schedules(stack):
    """A function which the clock starts has no client to notice that it fails: an alarm does."""
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
            wrong.append(f"{name}: nobody is told when it fails")
        elif alarm["Threshold"] != 0 or alarm["Statistic"] != "Sum":
            wrong.append(f"{name}: its alarm waits for more than one error")
    return wrong


def mappings(stack):
    """Which function the stream, the queue and the clock start, and how."""
    wrong = []
    wanted = {
        "relay": {
            "EventSourceArn": {"Fn::GetAtt": ["Table", "StreamArn"]},
            "StartingPosition": "TRIM_HORIZON",
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "BisectBatchOnFunctionError": True,
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
        # The alias, so that a deployment moves the work as it moves the calls.
        if not mapping["FunctionName"].get("Ref", "").endswith("Aliaslive"):
            wrong.append(f"{mapping['FunctionName']}: starts what is not published")
            continue
        found[stack.functions[_function(mapping)]] = mapping
    for directory, properties in wanted.items():
        for key, value in properties.items():
            if found.get(directory, {}).get(key) != value:
                wrong.append(f"{directory}: {key} is {found.get(directory, {}).get(key)}")
    wrong += [f"{directory}: nothing was to start it" for directory in found.keys() - wanted.keys()]
    relay = found.get("relay", {})
    if not 0 < relay.get("MaximumRetryAttempts", -1) <= 100:
        wrong.append("relay: a record that fails holds its shard for a day")
    patterns = [json.loads(f["Pattern"]) for f in relay.get("FilterCriteria", {}).get("Filters", [])]
    if patterns != [*FORWARDED, EXPIRED]:
        wrong.append(f"relay: is started for {patterns}")
    for directory in ("worker", "push"):
        if "MaximumConcurrency" not in found.get(directory, {}).get("ScalingConfig", {}):
            wrong.append(f"{directory}: no end to how many run at once")
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
            wrong.append(f"{name}: goes with the stack")
        if resources[name].get("UpdateReplacePolicy") != "Retain":
            wrong.append(f"{name}: goes when replaced")
    table = resources["Table"]["Properties"]
    expected = {
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": {"Fn::If": ["IsProd", True, False]},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
        "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
    }
    wrong += [f"Table: {key} is {table.get(key)}" for key, value in expected.items() if table.get(key) != value]
    bucket = resources["Bucket"]["Properties"]
    if set(bucket["PublicAccessBlockConfiguration"].values()) != {True}:
        wrong.append("Bucket: can be made public")
    expiring = [r.get("Prefix") for r in bucket["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in r]
    if expiring != ["up/"]:
        wrong.append(f"Bucket: objects expire below {expiring}")
    if resources["Api"]["Properties"]["EndpointConfiguration"]["Types"] != ["REGIONAL"]:
        wrong.append("Api: an edge-optimized API cuts a silent stream after 30 s")
    return wrong


def table_shape(table):
    """The keys of the table, under the empty name, and of its indexes, with what those carry."""
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
    """The logical name of the function which a mapping starts."""
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
