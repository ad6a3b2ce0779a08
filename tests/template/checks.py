"""The rules of the template. Each check returns a list of faults, empty if there are none.

Linters accept most of these mistakes. So test_template.py also runs every check on a copy
that has the mistake.
"""

import difflib
import fnmatch
import json
import pathlib
import re
import tomllib

_STORED = pathlib.Path(__file__).resolve().parents[2] / "shared/model/src/stored/schema.rs"
STREAMING = {"rpc", "tasks-get", "tasks-stream"}
PUBLIC = {"/.well-known/agent-card.json", "/.well-known/agent.json", "/agent.json", "/a2a-lambda/schemas", "/health"}

_WRITE = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"}
_LIST = {"dynamodb:BatchGetItem"}
_OBJECTS = {"s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"}
_SEEN = {"s3:ListBucket"}
_KEYS = {"secretsmanager:GetSecretValue"}
# A turn writes its task and may read the other tasks of its context.
_TURNS = {
    "SecretKey": _KEYS,
    "SkillSecretArn": _KEYS,
    "Table": _WRITE | _LIST,
    "Bucket/v1/*": _OBJECTS,
}
# The rights of an author's skills: whoever runs turns has them.
_AUTHORS = {"Fn::If": ["HasSkillPolicy", {"Ref": "SkillPolicyArn"}, {"Ref": "AWS::NoValue"}]}
RUNS_TURNS = {"tasks-send", "tasks-stream", "rpc", "worker"}
# A call may also delete a push config.
_CALLS = _TURNS | {"Table": _TURNS["Table"] | {"dynamodb:DeleteItem"}}
# A message can name a file that was uploaded separately.
_TAKEN = {"Bucket/up/*": {"s3:GetObject"}}
# Who lists, lists objects of tasks only, below their own prefix.
_TIDY = {"s3:prefix": "v1/*"}
_TAKE = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
_RECEIVE = _TAKE | {"sqs:ChangeMessageVisibility"}
# The actions of each role, by resource. Nothing else may be granted.
RIGHTS = {
    "agent-card": {},
    # A presigned URL grants the right to upload a file.
    # A caller deletes tasks and contexts here, and their uploads with them.
    "tasks-send": _CALLS
    | {
        "Bucket": _SEEN,
        "Bucket/v1/*": _OBJECTS | {"s3:DeleteObject"},
        "Bucket/up/*": {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"},
    },
    "tasks-get": {
        "SecretKey": _KEYS,
        # UpdateItem is for the items of limits, and for counters if the parameter Metrics says so.
        "Table": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"} | _LIST,
        "Table/index/GSI1": {"dynamodb:Query"},
        "Bucket/v1/*": {"s3:GetObject"},
    },
    "tasks-stream": _TURNS | _TAKEN,
    # It also lists tasks and contexts.
    "rpc": _CALLS | _TAKEN | {"Table/index/GSI1": {"dynamodb:Query"}},
    # It forwards records of the stream, and can neither read nor remove anything.
    "relay": {
        "Table.StreamArn": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "Table/stream/*": {"dynamodb:ListStreams"},
        "WorkQueue": {"sqs:SendMessage"},
        "PushQueue": {"sqs:SendMessage"},
        "RelayFailures": {"sqs:SendMessage"},
    },
    # It reads API keys alone: `KEYS_ONLY` limits its role to their partition.
    "authorizer": {
        "Table": {"dynamodb:GetItem"},
        "FirstKeySecret": _KEYS,
    },
    # It sends turns above the share of their tenant again, and unreadable messages to the dead letters.
    "worker": _TURNS | {"WorkQueue": _RECEIVE | {"sqs:SendMessage"}, "WorkDeadLetters": {"sqs:SendMessage"}},
    # It calls foreign servers: of a task it writes only its cursor, and nothing in the bucket.
    "push": {
        "SecretKey": _KEYS,
        "Table": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"},
        "Bucket/v1/*": {"s3:GetObject"},
        # After a failure it sends a message for later.
        "PushQueue": _TAKE | {"sqs:SendMessage"},
        "PushDeadLetters": {"sqs:SendMessage"},
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
    # Anybody can start it: it reads counters, the stored form and the secret key, and nothing of a tenant.
    "ops": {
        "SecretKey": _KEYS,
        "Table": {"dynamodb:BatchGetItem", "dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"},
        "Bucket": _SEEN,
        "WorkQueue": {"sqs:GetQueueAttributes"},
        "PushQueue": {"sqs:GetQueueAttributes"},
    },
}
# Partitions of counters, which hold no content of a tenant.
_COUNTERS = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["M#*"]}}
# The same, those of the tokens that models have used, and the brake.
_USE = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["B#brake", "M#*", "U#*"]}}
# key.rs names the partition of the stored form.
_FORM = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["F#form"]}}
# The conditions of rights; a list has one for each statement.
CONDITIONS = {
    ("tasks-send", "s3:ListBucket"): {"StringLike": _TIDY},
    ("sweep", "s3:ListBucket"): {"StringLike": _TIDY},
    ("ops", "s3:ListBucket"): {"StringEquals": {"s3:prefix": "health/"}},
    ("ops", "dynamodb:BatchGetItem"): _USE,
    ("ops", "dynamodb:GetItem"): [_USE, _FORM],
    ("ops", "dynamodb:UpdateItem"): [{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["T#*#R#limits"]}}, _FORM],
    # It sees how many items there are, and none of them.
    ("ops", "dynamodb:Scan"): {"StringEquals": {"dynamodb:Select": "COUNT"}},
    ("ops", "dynamodb:Query"): _USE,
    # `limits` and `pool` of key.rs make the keys of the first; a test there compares all keys with the pattern.
    ("tasks-get", "dynamodb:UpdateItem"): [
        {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["T#*#R#limits", "S#streams#*"]}},
        _COUNTERS,
    ],
    # key.rs names the partition of API keys.
    ("authorizer", "dynamodb:GetItem"): {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["A#keys"]}},
}
# Writing logs, and writing traces to X-Ray. SAM adds the second for `Tracing`.
MANAGED = (":policy/service-role/AWSLambdaBasicExecutionRole", ":policy/AWSXrayWriteOnlyAccess")
# Making network interfaces: SAM adds it for `VpcConfig`.
_VPC = ":policy/service-role/AWSLambdaVPCAccessExecutionRole"
_LIMITS = {"Ref": "LimitsOfFunctions"}
# The images that start the relay: of tasks that ask for a worker, and of tasks with an event for webhooks.
FORWARDED = [
    {"dynamodb": {"Keys": {"SK": {"S": ["META"]}}, "NewImage": {name: {"N": [{"exists": True}]}}}}
    for name in ("dispatch", "notify")
]
# The settings that name the resources of a function. All functions have the others.
_CALLED = {"A2A_TABLE", "A2A_BUCKET", "A2A_SECRET_KEY_ID"}
_SKILLS = {"A2A_SKILL_SECRET"}
# The functions with streams share pools of slots.
_STREAMS = {"A2A_CONCURRENCY"}
NAMED = {
    "agent-card": set(),
    "tasks-send": _CALLED | _SKILLS,
    "tasks-get": _CALLED | _STREAMS,
    "tasks-stream": _CALLED | _STREAMS | _SKILLS,
    "rpc": _CALLED | _STREAMS | _SKILLS,
    "relay": {"A2A_WORK_QUEUE_URL", "A2A_PUSH_QUEUE_URL"},
    "authorizer": {"A2A_TABLE", "A2A_FIRST_KEY"},
    "worker": _CALLED | _SKILLS | {"A2A_WORK_QUEUE_URL", "A2A_DEAD_LETTERS_URL"},
    "push": {"A2A_TABLE", "A2A_BUCKET", "A2A_PUSH_QUEUE_URL", "A2A_DEAD_LETTERS_URL", "A2A_SECRET_KEY_ID"},
    "sweep": {"A2A_TABLE", "A2A_BUCKET", "A2A_WORK_QUEUE_URL", "A2A_PUSH_QUEUE_URL"},
    "ops": _CALLED | {"A2A_WORK_QUEUE_URL", "A2A_PUSH_QUEUE_URL"},
}
# Seconds. API Gateway waits 29 for a buffered response; a stream and a turn may use Lambda's maximum.
TIMEOUTS = {
    "agent-card": 10,
    "tasks-send": 29,
    "tasks-get": 900,
    "tasks-stream": 900,
    "rpc": 900,
    "relay": 60,
    "authorizer": 10,
    "worker": 900,
    "push": 60,
    "sweep": 300,
    "ops": 10,
}


def base_url(stack):
    """The stage tells the functions their base URL: that of the operator, else its own address."""
    wrong = []
    stages = list(stack.of_type("AWS::ApiGateway::Stage").values())
    expected = {"publicUrl": {"Fn::If": ["OwnUrl", {"Ref": "PublicUrl"}, stack.source["Outputs"]["ApiUrl"]["Value"]]}}
    variables = [stage["Properties"].get("Variables") for stage in stages]
    if variables != [expected]:
        wrong.append(f"Api: the stage variables are {variables}")
    if stack.source["Conditions"].get("OwnUrl") != {"Fn::Not": [{"Fn::Equals": [{"Ref": "PublicUrl"}, ""]}]}:
        wrong.append("OwnUrl: is not whether PublicUrl is set")
    return wrong


def retries(stack):
    """A failed round of the sweep is not repeated before the next one."""
    found = [config["Properties"] for config in stack.of_type("AWS::Lambda::EventInvokeConfig").values()]
    given = [(config["FunctionName"].get("Ref"), config.get("MaximumRetryAttempts")) for config in found]
    return [] if given == [("SweepFunction", 0)] else [f"asynchronous invocations are repeated: {given}"]


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
        target = f"functions/${{{names[directory]}.Arn}}/"
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


def permissions(stack):
    """API Gateway may start the function of each route, also if it writes the colon of a path as `%3A`."""
    wrong, allowed = [], {}
    for resource in stack.of_type("AWS::Lambda::Permission").values():
        properties = resource["Properties"]
        source = properties.get("SourceArn", {}).get("Fn::Sub")
        place = source[0] if isinstance(source, list) else source
        function = stack.functions.get(properties["FunctionName"].get("Ref"))
        if function and place and "execute-api" in place:
            allowed.setdefault(function, []).append(place.partition("/")[2])
    for directory, method, path, _ in stack.events():
        asked = f"stage/{method}{re.sub('{[^}]*}', 'x', path)}"
        for form in {asked, asked.replace(":", "%3A")}:
            patterns = [pattern.replace("${__Stage__}", "*") for pattern in allowed.get(directory, [])]
            if not any(fnmatch.fnmatchcase(form, pattern) for pattern in patterns):
                wrong.append(f"{form}: API Gateway may not start {directory}")
    return wrong


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
    """Only the card and the status are public; every other route has the authorizer."""
    wrong = []
    for method, path, operation in stack.operations():
        expected = [{"NONE": []}] if path in PUBLIC and method in ("GET", "HEAD") else [{"Caller": []}]
        if operation.get("security") != expected:
            wrong.append(f"{method} {path}: security {operation.get('security')}")
    return wrong


def doors(stack):
    """A path that everybody can call has a low rate of its own, and an alarm. No stage has a cache, which costs by the hour."""
    stage = stack.transformed["Resources"]["ApiStage"]["Properties"]
    rates = {(it["ResourcePath"][1:].replace("~1", "/"), it["HttpMethod"]): it for it in stage["MethodSettings"]}
    wrong = [f"{key}: has a cache" for key, it in rates.items() if it.get("CachingEnabled")]
    wrong += ["the stage has a cache"] if stage.get("CacheClusterEnabled") else []
    for method, path, operation in stack.operations():
        found = rates.get((path, method), {})
        limits = (found.get("ThrottlingRateLimit"), found.get("ThrottlingBurstLimit"))
        public = operation.get("security") == [{"NONE": []}]
        expected = (None, None) if not public else (10, 10) if path == "/health" else (20, 100)
        if limits != expected:
            wrong.append(f"{method} {path}: its rate is {limits}")
    metrics = [metric for alarm in stack.alarms().values() for metric in _metrics(alarm)]
    calls = [it["Dimensions"][0]["Value"] for it in metrics if it["MetricName"] == "Invocations"]
    if {"Fn::Sub": "${AWS::StackName}-agent-card"} not in calls:
        wrong.append("no alarm reports a card that is called in a loop")
    return wrong


def cors(stack, code):
    """A preflight says what the functions say. Without an origin it allows no page.

    `code` has the methods, request headers and seconds of the functions.
    """
    wrong = []
    origin = {"Fn::If": ["HasCorsOrigin", {"Fn::Sub": "'${CorsOrigin}'"}, "'https://off.invalid'"]}
    if stack.source["Conditions"].get("HasCorsOrigin") != {"Fn::Not": [{"Fn::Equals": [{"Ref": "CorsOrigin"}, ""]}]}:
        wrong.append("HasCorsOrigin: is not whether CorsOrigin is set")
    named = {"Origin": origin, "Methods": code["METHODS"], "Headers": code["REQUEST_HEADERS"], "Max-Age": code["MAX_AGE"]}
    expected = {
        f"method.response.header.Access-Control-{'' if name == 'Max-Age' else 'Allow-'}{name}":
            value if name == "Origin" else f"'{value}'"
        for name, value in named.items()
    }
    for path, methods in stack.paths().items():
        preflight = methods.get("options", {})
        integration = preflight.get("x-amazon-apigateway-integration", {})
        if integration.get("type") != "mock" or preflight.get("security") is not None:
            wrong.append(f"{path}: a preflight needs a caller or a function")
            continue
        found = integration["responses"]["default"]["responseParameters"]
        if found != expected:
            wrong.append(f"{path}: a preflight is answered with {found}")
    [bucket] = stack.of_type("AWS::S3::Bucket").values()
    condition, rules, otherwise = bucket["Properties"].get("CorsConfiguration", {}).get("Fn::If", [None] * 3)
    if condition != "HasCorsOrigin" or otherwise != {"Ref": "AWS::NoValue"}:
        wrong.append("the bucket allows pages without an origin")
    elif [rule["AllowedOrigins"] for rule in rules["CorsRules"]] != [[{"Ref": "CorsOrigin"}]]:
        wrong.append(f"the bucket allows pages of {rules}")
    return wrong


def authorizer(stack):
    """API Gateway asks the authorizer of the stack, or one of the operator's, for each header that it has not seen."""
    wrong = []
    body = stack.transformed["Resources"]["Api"]["Properties"]["Body"]
    found = body["components"]["securitySchemes"]["Caller"]["x-amazon-apigateway-authorizer"]
    written = stack.source["Resources"]["Api"]["Properties"]["Auth"]["Authorizers"]["Caller"]
    [uri] = found["authorizerUri"]["Fn::Sub"][1].values()
    chosen = uri.get("Fn::If", [None, None, None])
    if chosen[0] != "OwnAuthorizer" or chosen[2] != {"Fn::GetAtt": ["AuthorizerFunction", "Arn"]}:
        wrong.append(f"the authorizer is {uri}")
    if stack.source["Parameters"]["AuthorizerFunctionArn"].get("Default") != "":
        wrong.append("the operator has to supply an authorizer")
    if found["type"] != "request" or found["identitySource"] != "method.request.header.Authorization":
        wrong.append(f"the authorizer is asked by {found}")
    # The transform has already replaced the parameter by its default.
    if written["Identity"]["ReauthorizeEvery"] != {"Ref": "ReauthorizeEvery"} or found["authorizerResultTtlInSeconds"] != 300:
        wrong.append(f"a withdrawn key lives for {found['authorizerResultTtlInSeconds']}")
    readers = {
        name
        for name, resource in stack.transformed["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and "FirstKeySecret" in json.dumps(resource)
    }
    if readers != {"AuthorizerFunctionRole"}:
        wrong.append(f"the first key can be read by {sorted(readers)}")
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
        allowed = MANAGED + ((_VPC,) if directory in RUNS_TURNS else ())
        others = [m for m in managed if not (isinstance(m, str) and m.endswith(allowed))]
        if others != [_LIMITS] + ([_AUTHORS] if directory in RUNS_TURNS else []):
            wrong.append(f"{directory}: managed policies {managed}")
        granted = {}
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                if "Fn::If" in statement:
                    _, statement, _ = statement["Fn::If"]
                expected = [_list(CONDITIONS.get((directory, action))) for action in _list(statement["Action"])]
                if any(statement.get("Condition") not in allowed for allowed in expected):
                    wrong.append(f"{directory}: unexpected condition of {statement}")
                if statement["Effect"] != "Allow" or set(statement) - {"Effect", "Action", "Resource", "Condition"}:
                    wrong.append(f"{directory}: unexpected statement {statement}")
                for resource in _list(statement["Resource"]):
                    granted.setdefault(_place(resource), set()).update(_list(statement["Action"]))
        if granted != RIGHTS.get(directory):
            wrong.append(f"{directory}: is granted {granted}")
    return wrong


def limits(stack):
    """The policies that SAM attaches are for any log group and any interface. A denial leaves those of the stack."""
    expected = [
        {"Effect": "Deny", "Action": ["logs:*"], "NotResource": {"Fn::GetAtt": [_log_group(stack), "Arn"]}},
        # Else late lines make the group again after a deletion, and the next deployment finds it.
        {"Effect": "Deny", "Action": ["logs:CreateLogGroup"], "Resource": "*"},
        {
            "Effect": "Deny",
            "Action": [f"ec2:{it}" for it in ("AssignPrivateIpAddresses", "CreateNetworkInterface",
                                              "DeleteNetworkInterface", "UnassignPrivateIpAddresses")],
            "Resource": "*",
            "Condition": {"Null": {"lambda:SourceFunctionArn": "false"}},
        },
        {"Fn::If": ["HasKmsKey", {
            "Effect": "Allow",
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": {"Ref": "KmsKeyArn"},
            "Condition": {"StringLike": {"kms:ViaService": ["dynamodb.*", "s3.*", "secretsmanager.*"]}},
        }, {"Ref": "AWS::NoValue"}]},
    ]
    found = stack.transformed["Resources"]["LimitsOfFunctions"]["Properties"]["PolicyDocument"]["Statement"]
    return [] if found == expected else [f"the limits of all roles are {found}"]


def places(stack):
    """Who runs skills has the memory and the VPC of the operator. `push` checks addresses, so it is in none."""
    vpc = {it: {"Fn::Split": [",", {"Ref": f"Vpc{it}"}]} for it in ("SubnetIds", "SecurityGroupIds")}
    wrong = []
    for name, directory in stack.functions.items():
        properties = stack.transformed["Resources"][name]["Properties"]
        found = properties["MemorySize"], properties.get("VpcConfig")
        skills = {"Ref": "MemorySize"}, {"Fn::If": ["HasVpc", vpc, {"Ref": "AWS::NoValue"}]}
        if found != (skills if directory in RUNS_TURNS else (256, None)):
            wrong.append(f"{directory}: has {found}")
        boundary = stack.transformed["Resources"][f"{name}Role"]["Properties"].get("PermissionsBoundary")
        if boundary != {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}]}:
            wrong.append(f"{directory}: has the boundary {boundary}")
    return wrong


def keys(stack):
    """What the stack stores is encrypted with the operator's key, if there is one."""
    key = {"Ref": "KmsKeyArn"}
    stored = [it for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
              for it in stack.of_type(kind).items()]
    return [f"{name}: has no key of the operator" for name, it in stored if not _names(it["Properties"], key)]


def _names(value, wanted):
    """Whether `value` contains `wanted`."""
    if value == wanted:
        return True
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return any(_names(it, wanted) for it in parts)


def wired(stack, nested):
    """Each parameter is the value of something, also where only a condition names it, and in the templates of `nested`."""
    # SAM replaces some parameters of the API by their values.
    used = [stack.transformed["Resources"], stack.source["Resources"]]
    conditions = stack.source["Conditions"]
    wrong = []
    for parameter in stack.source["Parameters"]:
        ways = [parameter] + [name for name, it in conditions.items() if _names(it, {"Ref": parameter})]
        ways += [name for name, it in conditions.items() if any(_names(it, {"Condition": way}) for way in ways)]
        if not any(_mentions(used, way) for way in ways):
            wrong.append(f"{parameter}: changes nothing")
    passed = [it["Properties"] for it in stack.of_type("AWS::CloudFormation::Stack").values()]
    passed = {it["TemplateURL"]: it["Parameters"].keys() for it in passed}
    for place, template in nested.items():
        known = template["Parameters"].keys()
        unused = [name for name in known if not _mentions([template["Resources"], template.get("Conditions")], name)]
        wrong += [f"{place}: {sorted(known ^ passed[place])} are not passed, or not taken"] if known != passed[place] else []
        wrong += [f"{place}: {unused} change nothing"] if unused else []
    return wrong


def acl(stack, errors):
    """`rate` is an ACL of this stack that refuses by address, then all, with a row of `errors`; an ARN is one of the operator."""
    resources = stack.transformed["Resources"]
    used = resources["WebAclAssociation"]["Properties"]["WebACLArn"]
    wrong = [] if used == {"Fn::If": ["HasRates", {"Fn::GetAtt": ["Rates", "Arn"]}, {"Ref": "WebAcl"}]} else [f"the stage has the ACL {used}"]
    conditions = stack.source["Conditions"]
    is_rate, is_off = ({"Fn::Equals": [{"Ref": "WebAcl"}, it]} for it in ("rate", "off"))
    if (conditions["HasRates"], conditions["HasWebAcl"]) != (is_rate, {"Fn::Not": [is_off]}):
        wrong.append("an ACL is there whatever the parameter says")
    properties = resources["Rates"]["Properties"]
    limits = []
    for rule in properties["Rules"]:
        [(_, rate)] = rule["Statement"].items()
        limits.append((rule["Priority"], rate["AggregateKeyType"], rate["Limit"], rate["EvaluationWindowSec"]))
        answer = rule["Action"]["Block"]["CustomResponse"]
        headers = {it["Name"]: it["Value"] for it in answer["ResponseHeaders"]}
        body = json.loads(properties["CustomResponseBodies"][answer["CustomResponseBodyKey"]]["Content"])
        waits = {it.get("metadata", {}).get("retryAfter") for it in body["error"]["details"]}
        row = {"reason": body["error"]["details"][0].get("reason"), "status": body["error"].get("status"), "http": answer["ResponseCode"]}
        if waits != {headers["Retry-After"]} or not any(row.items() <= it.items() for it in errors):
            wrong.append(f"{rule['Name']}: answers with {row} and {headers}")
    if limits != [(0, "IP", 6000, 60), (1, "CONSTANT", 60000, 60)] or properties["DefaultAction"] != {"Allow": {}}:
        wrong.append(f"the rates are {limits}")
    # A sampled request has the credentials of its caller.
    if any(it["VisibilityConfig"]["SampledRequestsEnabled"] for it in (properties, *properties["Rules"])):
        wrong.append("samples of requests are kept")
    return wrong


def given(stack, samconfig, changes=None):
    """The parameters that a samconfig sets, also in its comments, and those of an author's changes, are of the template, which takes their values.

    SAM drops a parameter that the template does not have.
    """
    known, wrong, seen = stack.source["Parameters"], [], {}
    for stage, config in tomllib.loads(samconfig).items():
        if stage != "version":
            seen |= {(stage, name): it for name, it in config["deploy"]["parameters"]["parameter_overrides"].items()}
    seen |= {("a comment", name): tomllib.loads(f"it = {it}")["it"] for name, it in re.findall(r"^#   (\w+) = (.+)$", samconfig, re.M)}
    for kind in ("Parameters", "Resources"):
        here = stack.source[kind]
        seen |= {("changes.yaml", name): None for name, it in ((changes or {}).get(kind) or {}).items() if name not in here and "Type" not in it}
    for (place, name), value in seen.items():
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *stack.source["Resources"]], 1, 0)
            wrong.append(f"{place}: the template does not have {name}; the nearest name is {near[0]}")
        elif value not in [str(one) for one in known[name].get("AllowedValues", [value])] or not re.fullmatch(known[name].get("AllowedPattern", "(?s:.*)"), value):
            wrong.append(f"{place}: {name} is {value}")
    return wrong


def _mentions(value, name):
    """Whether `value` refers to a parameter, or depends on a condition."""
    if isinstance(value, dict):
        return (
            value.get("Ref") == name or value.get("Condition") == name
            or _list(value.get("Fn::If", [None]))[0] == name
            or "${" + name + "}" in str(value.get("Fn::Sub", ""))
            or any(_mentions(it, name) for it in value.values())
        )
    return isinstance(value, list) and any(_mentions(it, name) for it in value)


def settings(stack):
    """Environment and packaging of every function."""
    wrong = []
    for name, function in stack.of_type("AWS::Lambda::Function").items():
        properties = function["Properties"]
        variables = properties["Environment"]["Variables"]
        directory = stack.functions[name]
        if variables.get("A2A_AUTH") != "gateway":
            wrong.append(f"{directory}: A2A_AUTH is {variables.get('A2A_AUTH')}")
        if variables.get("A2A_FUNCTION") != directory:
            wrong.append(f"{directory}: A2A_FUNCTION is {variables.get('A2A_FUNCTION')}")
        if "A2A_SECRET_KEY" in variables:
            wrong.append(f"{directory}: its configuration shows a secret key")
        named = set().union(*NAMED.values()) & variables.keys()
        if named != NAMED.get(directory):
            wrong.append(f"{directory}: has {sorted(named)}")
        if properties["Architectures"] != ["arm64"] or properties["Runtime"] != "provided.al2023":
            wrong.append(f"{directory}: {properties['Architectures']} {properties['Runtime']}")
        if properties["Handler"] != "bootstrap":
            wrong.append(f"{directory}: handler {properties['Handler']}")
        if properties.get("TracingConfig") != {"Mode": {"Ref": "Tracing"}}:
            wrong.append(f"{directory}: does not follow the parameter `Tracing`")
        if properties["LoggingConfig"]["LogFormat"] != "JSON":
            wrong.append(f"{directory}: logs are not JSON")
        if properties["Timeout"] != TIMEOUTS.get(directory):
            wrong.append(f"{directory}: timeout {properties['Timeout']}")
        written = stack.source["Resources"][name]["Properties"]
        # `sam build` then compiles each function alone, with the features of its own manifest.
        uri = written["CodeUri"]
        if uri != f"functions/{directory}/":
            wrong.append(f"{directory}: CodeUri {uri}")
        metadata = stack.source["Resources"][name].get("Metadata", {})
        if metadata.get("BuildMethod") != "rust-cargolambda":
            wrong.append(f"{directory}: `sam build` does not compile it")
        if "A2A_PUBLIC_URL" in variables:
            wrong.append(f"{directory}: its base URL does not come from the stage")
    return wrong


def queues(stack):
    """Every queue has an alarm. A queue with a consumer has dead letters and a long enough visibility timeout."""
    wrong = []
    found = stack.of_type("AWS::SQS::Queue")
    watched = {}
    for alarm in stack.alarms().values():
        for metric in _metrics(alarm):
            for dimension in metric.get("Dimensions", []):
                if dimension["Name"] == "QueueName":
                    watched[dimension["Value"]["Fn::GetAtt"][0]] = (metric["MetricName"], alarm["Threshold"])
    for name, queue in found.items():
        properties = queue["Properties"]
        alarm = watched.get(name)
        if alarm is None:
            wrong.append(f"{name}: no alarm")
            continue
        takers = [m for m in _mappings(stack) if m["EventSourceArn"] == {"Fn::GetAtt": [name, "Arn"]}]
        if not takers:
            # It has no consumer: its messages are for the operator.
            if alarm != ("ApproximateNumberOfMessagesVisible", 0):
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
            function = stack.transformed["Resources"][_function(taker)]["Properties"]
            if function["Environment"]["Variables"].get("A2A_DEAD_LETTERS_URL") != {"Ref": target}:
                wrong.append(f"{name}: a message that nobody can read does not go to {target}")
            timeout = function["Timeout"]
            if properties["VisibilityTimeout"] < timeout:
                wrong.append(f"{name}: a message becomes visible again while its worker runs")
    return wrong


def schedules(stack):
    """An alarm reports failures of functions that the schedule or the stream starts, because no client notices them."""
    wrong = []
    watched = {}
    for properties in stack.alarms().values():
        for metric in _metrics(properties):
            dimensions = metric.get("Dimensions", [])
            if [d["Name"] for d in dimensions] == ["FunctionName"]:
                watched[dimensions[0]["Value"]["Fn::Sub"], metric["MetricName"]] = properties
    for name, resource in stack.source["Resources"].items():
        events = resource.get("Properties", {}).get("Events", {}).values()
        if all(event["Type"] != "Schedule" for event in events):
            continue
        # A timeout counts as an error.
        alarm = watched.get((f"${{AWS::StackName}}-{stack.functions[name]}", "Errors"))
        if alarm is None:
            wrong.append(f"{name}: no alarm reports its failure")
        elif alarm["Threshold"] != 0 or {it["MetricStat"]["Stat"] for it in alarm["Metrics"] if "MetricStat" in it} != {"Sum"}:
            wrong.append(f"{name}: its alarm waits for more than one error")
    # A schedule that is off fails at nothing. Three periods, the longest that the parameter allows.
    silent = watched.get(("${AWS::StackName}-sweep", "Invocations"), {})
    beats = [silent.get(key) for key in ("Statistic", "Period", "EvaluationPeriods", "ComparisonOperator", "Threshold", "TreatMissingData")]
    longest = stack.source["Parameters"]["SweepInterval"]["AllowedPattern"]
    if beats != ["Sum", 600, 3, "LessThanThreshold", 1, "breaching"] or longest != "rate\\((1 minute|([2-9]|10) minutes)\\)":
        wrong.append("sweep: no alarm reports that it does not run")
    behind = watched.get(("${AWS::StackName}-relay", "IteratorAge"), {})
    # In milliseconds. Far less than the day after which the relay gives up a record.
    if behind.get("Statistic") != "Maximum" or not 0 < behind.get("Threshold", 0) <= 3_600_000:
        wrong.append("relay: no alarm reports that it is behind")
    return wrong


# The metrics that AWS publishes, with the names of their dimensions.
_API = {("ApiName", "Stage")}
_FUNCTION = {("FunctionName",)}
_CAPACITY = {("TableName",), ("TableName", "GlobalSecondaryIndexName")}
PUBLISHED = {
    ("AWS/ApiGateway", "5XXError"): _API,
    ("AWS/ApiGateway", "Count"): _API,
    ("AWS/Lambda", "Errors"): _FUNCTION,
    ("AWS/Lambda", "Invocations"): {("FunctionName",)},
    ("AWS/Lambda", "Throttles"): _FUNCTION,
    ("AWS/Lambda", "Duration"): _FUNCTION,
    ("AWS/Lambda", "IteratorAge"): _FUNCTION,
    ("AWS/Lambda", "RecursiveInvocationsDropped"): _FUNCTION,
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): {("QueueName",)},
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): {("QueueName",)},
    ("AWS/DynamoDB", "ReadThrottleEvents"): _CAPACITY,
    ("AWS/DynamoDB", "WriteThrottleEvents"): _CAPACITY,
    ("AWS/S3", "BucketSizeBytes"): {("BucketName", "StorageType")},
    ("AWS/Usage", "ResourceCount"): {("Service", "Type", "Resource", "Class")},
}


# What the description of an alarm begins with.
GROUPS = {"The agent fails", "Work waits", "Work is lost", "The edge refuses", "The table refuses", "The bucket grows"}


def alarms(stack):
    """Every function, the table and its indexes have their alarms, and each alarm watches something that exists.

    An alarm exists only where it notifies a person, and says in which group it is.
    """
    wrong, watched = [], set()
    resources = stack.transformed["Resources"]
    # Deployments watch one, with or without a person. The nested stack has what it counts.
    if "Condition" in resources["Alarms"] or [*stack.of_type("AWS::CloudWatch::Alarm")] != ["DeploymentAlarm"]:
        wrong.append("alarms exist that notify no person")
    notifies = {"Notifies": {"Fn::Not": [{"Fn::Equals": [{"Ref": "AlarmTopicArn"}, ""]}]},
                "HasAccessLog": {"Fn::And": [{"Condition": "Notifies"}, {"Fn::Not": [{"Fn::Equals": [{"Ref": "AccessLogs"}, ""]}]}]}}
    if stack.nested_alarms["Conditions"] != notifies:
        wrong.append("alarms exist that notify no person")
    nested = stack.nested_alarms["Resources"].items()
    for name, resource in nested:
        if resource["Type"] == "AWS::CloudWatch::Alarm" and resource.get("Condition") not in notifies:
            wrong.append(f"{name}: exists without a topic")
        if resource["Type"] == "AWS::CloudWatch::Alarm" and resource["Properties"]["AlarmDescription"].split(" - ")[0] not in GROUPS:
            wrong.append(f"{name}: is in no group")
    always = {n for n, r in nested if r["Type"] == "AWS::Logs::MetricFilter" and "Condition" not in r}
    counted = {m["MetricName"] for m in _metrics(stack.alarms()["DeploymentAlarm"]) if not isinstance(m["Namespace"], str)}
    if counted != always:
        wrong.append(f"deployments watch {sorted(counted)}, and {sorted(always)} are counted")
    if stack.source["Outputs"].get("DeploymentAlarmArn", {}).get("Value") != {"Fn::GetAtt": ["DeploymentAlarm", "Arn"]}:
        wrong.append("deployments find no alarm")
    topic = {"Fn::If": ["HasAlarmEmail", {"Ref": "AlarmTopic"}, {"Ref": "AlarmTopicArn"}]}
    names = {f"${{AWS::StackName}}-{directory}" for directory in stack.functions.values()}
    indexes = {i["IndexName"] for i in resources["Table"]["Properties"]["GlobalSecondaryIndexes"]}
    exists = {
        "FunctionName": lambda v: v.get("Ref") in stack.functions or v.get("Fn::Sub") in names,
        "Resource": lambda v: v == "ConcurrentExecutions",
        "QueueName": lambda v: resources[v["Fn::GetAtt"][0]]["Type"] == "AWS::SQS::Queue",
        "TableName": lambda v: v == {"Ref": "Table"},
        "GlobalSecondaryIndexName": lambda v: v in indexes,
        "BucketName": lambda v: v == {"Ref": "Bucket"},
        # Without a name of its own, an API of SAM has that of its stack.
        "ApiName": lambda v: v == {"Ref": "AWS::StackName"} and "Name" not in stack.source["Resources"]["Api"]["Properties"],
        "Stage": lambda v: v == {"Ref": "Stage"},
        "StorageType": lambda v: v == "StandardStorage",
        "Service": lambda v: v == "Lambda",
        "Type": lambda v: v == "Resource",
        "Class": lambda v: v == "None",
    }
    own = {n["MetricName"] for f in _of(stack, "AWS::Logs::MetricFilter") for n in f["MetricTransformations"]}
    for name, alarm in stack.alarms().items():
        # CloudWatch, "Using metric math": an alarm on an expression may have ten metrics.
        wrong += [f"{name}: has more than ten metrics"] if len(_metrics(alarm)) > 10 else []
        for metric in _metrics(alarm):
            place = (metric["Namespace"], metric["MetricName"])
            dimensions = metric.get("Dimensions", [])
            if not isinstance(place[0], str):
                wrong += [] if place[1] in own and not dimensions else [f"{name}: nothing publishes {place[1]}"]
                continue
            if tuple(d["Name"] for d in dimensions) not in PUBLISHED.get(place, set()):
                wrong.append(f"{name}: nothing publishes {place} by {[d['Name'] for d in dimensions]}")
                continue
            wrong += [f"{name}: {d} does not exist" for d in dimensions if not exists[d["Name"]](d["Value"])]
            watched.add((place[1], *(str(d["Value"]) for d in dimensions)))
        if alarm.get("AlarmActions", [topic]) != [topic] or "AlarmActions" not in alarm and name != "DeploymentAlarm":
            wrong.append(f"{name}: notifies {alarm.get('AlarmActions')}")
    for directory in stack.functions.values():
        # SweepSilentAlarm reports a sweep that does not start.
        for metric in ("Errors", "Throttles") if directory != "sweep" else ("Errors",):
            if (metric, str({"Fn::Sub": f"${{AWS::StackName}}-{directory}"})) not in watched:
                wrong.append(f"{directory}: no alarm reports {metric}")
    for kind in ("Read", "Write"):
        for index in ((), *((i,) for i in indexes)):
            if (f"{kind}ThrottleEvents", str({"Ref": "Table"}), *index) not in watched:
                wrong.append(f"Table {index}: no alarm reports throttled {kind}s")
    return wrong


def _log_group(stack):
    """The logical id of the log group of the functions."""
    return stack.source["Globals"]["Function"]["LoggingConfig"]["LogGroup"]["Ref"]


# Names that an account has once, in all regions.
_GLOBAL = {"DashboardName", "BucketName", "RoleName", "ManagedPolicyName"}


def names(stack, nested, agent):
    """Two agents, stages or regions share no name, and a deployment over another agent's stack changes no function."""
    wrong = []
    for template in (stack.transformed, *nested):
        for name, resource in template["Resources"].items():
            for key in _GLOBAL & resource.get("Properties", {}).keys():
                if resource["Properties"][key] != {"Fn::Sub": "${StackName}-${AWS::Region}"}:
                    wrong.append(f"{name}: its {key} is used by a second region")
    resources = stack.transformed["Resources"]
    for name in stack.functions:
        if resources[name]["Properties"].get("FunctionName") != {"Fn::Sub": f"${{AWS::StackName}}-{stack.functions[name]}"}:
            wrong.append(f"{name}: its name is used by a second stack")
        if resources[name]["Properties"]["LoggingConfig"].get("LogGroup") != {"Ref": f"LogsOf{agent}"}:
            wrong.append(f"{name}: does not wait for the log group of its agent")
    group = resources.get(f"LogsOf{agent}", {}).get("Properties", {}).get("LogGroupName")
    if group != {"Fn::Sub": "/a2a-lambda/${AWS::StackName}"}:
        wrong.append(f"another agent has a log group beside {group}")
    return wrong


# The longest values of variables: names and ARNs under a stack name of 46 characters, and the
# longest that a person sets.
_LONGEST = {"Ref": 170, "Fn::GetAtt": 170, "Fn::If": 170}


def environment(stack):
    """The variables of a function fit into the 4 KB of Lambda, with the longest object of settings."""
    wrong = []
    for name, function in stack.of_type("AWS::Lambda::Function").items():
        size = 0
        for variable, value in function["Properties"]["Environment"]["Variables"].items():
            longest = stack.source["Parameters"]["Settings"]["MaxLength"] if value == {"Ref": "Settings"} else None
            text = len(value) if isinstance(value, str) else longest or max(_LONGEST[key] for key in value)
            size += len(variable) + text
        if size > 4096:
            wrong.append(f"{name}: its variables have {size} bytes")
    return wrong


def updates(stack, release):
    """A changed parameter reaches callers: SAM would publish a version, or deploy the API, for other changes only."""
    kept = {"AWS::Lambda::Version", "AWS::Lambda::Alias", "AWS::CodeDeploy::DeploymentGroup"}
    wrong = [f"{name}: callers keep its version" for name, it in stack.transformed["Resources"].items() if it["Type"] in kept]
    for name, directory in stack.functions.items():
        before = stack.transformed["Resources"][name].get("DependsOn")
        if before != (None if directory == "ops" else "CheckedSettings"):
            wrong.append(f"{name}: waits for {before}, and not for a program that accepts the settings")
    asked = stack.transformed["Resources"].get("CheckedSettings", {}).get("Properties", {})
    expected = {
        "ServiceToken": {"Fn::GetAtt": ["OpsFunction", "Arn"]}, "ServiceTimeout": 60, "Settings": {"Ref": "Settings"},
        "CorsOrigin": {"Ref": "CorsOrigin"}, "Release": release,
        "Form": re.search(r"SCHEMA: u32 = (\d+);", _STORED.read_text())[1],
    }
    if asked != expected:
        wrong.append(f"the settings are checked with {asked}")
    if stack.source["Resources"]["Api"]["Properties"].get("AlwaysDeploy") is not True:
        wrong.append("Api: a changed parameter is not deployed")
    return wrong


def widgets(dashboard, stack, fields):
    """The dashboard shows functions that exist, and its queries name fields of the lines that operators read."""
    [board] = (resource["Properties"] for resource in dashboard["Resources"].values())
    wrong, found = [], 0
    functions = [f"${{StackName}}-{directory}" for directory in stack.functions.values()]
    for widget in json.loads(board["DashboardBody"]["Fn::Sub"])["widgets"]:
        for metric in widget["properties"].get("metrics", []):
            wrong += [f"{metric} does not exist" for value in [metric[3]] if metric[2] == "FunctionName" and value not in functions]
        query = widget["properties"].get("query")
        if query:
            found += 1
            named = set(re.findall(r"`([\w.]+)`|'(a2a_lambda::\w+)'", query))
            wrong += [f"no line has {name}" for pair in named for name in pair if name and name not in fields]
            wrong += [] if query.startswith("SOURCE '${Logs}' | ") else [f"{query} reads other lines"]
    return wrong if found else ["the dashboard has no query"]


def logs(stack):
    """Logs keep what operators need, and the access log has fixed fields without ids of tasks."""
    wrong = []
    logging = stack.source["Globals"]["Function"]["LoggingConfig"]
    # The lines that operators read are INFO.
    if logging["ApplicationLogLevel"] != {"Fn::If": ["LogsDebug", "DEBUG", "INFO"]}:
        wrong.append("the lines of calls would be dropped")
    if logging["SystemLogLevel"] != "INFO":
        wrong.append("reports of invocations would be dropped")
    format = stack.transformed["Resources"]["ApiStage"]["Properties"]["AccessLogSetting"]["Fn::If"][1]["Format"]
    fields = set(json.loads(format).values())
    expected = {"requestId", "requestTimeEpoch", "httpMethod", "resourcePath", "status", "responseLatency"}
    expected |= {"authorizer.principalId", "authorizer.tenant", "authorizer.error", "identity.sourceIp"}
    if fields != {f"$context.{field}" for field in expected}:
        wrong.append(f"the access log has {sorted(fields)}")
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
    started = [(r["ScheduleExpression"], [t["Arn"] for t in r["Targets"]]) for r in rules]
    if started != [({"Ref": "SweepInterval"}, [{"Fn::GetAtt": ["SweepFunction", "Arn"]}])]:
        wrong.append(f"sweep: started by {started}")
    return wrong


def recursion(stack):
    """Only `push` and `worker` start themselves again. An alarm reports events that Lambda dropped."""
    loops = {name for name, it in stack.of_type("AWS::Lambda::Function").items() if it["Properties"].get("RecursiveLoop") == "Allow"}
    wanted = set()
    for queue in ("PushQueue", "WorkQueue"):
        senders = {name for name, directory in stack.functions.items() if "sqs:SendMessage" in RIGHTS[directory].get(queue, ())}
        wanted |= senders & {_function(it) for it in _mappings(stack) if it["EventSourceArn"] == {"Fn::GetAtt": [queue, "Arn"]}}
    wrong = [] if loops == wanted else [f"{sorted(loops)} may start themselves again"]
    started = {f"${{AWS::StackName}}-{stack.functions[_function(mapping)]}" for mapping in _mappings(stack)}
    metrics = [metric for alarm in stack.alarms().values() for metric in _metrics(alarm)]
    dropped = [metric["Dimensions"] for metric in metrics if metric["MetricName"] == "RecursiveInvocationsDropped"]
    if {dimension["Value"]["Fn::Sub"] for [dimension] in dropped} != started:
        wrong.append("no alarm reports dropped events")
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
        # It would stop the rollback of a first deployment.
        "DeletionProtectionEnabled": None,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
        "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
    }
    caps = {"MaxReadRequestUnits": {"Ref": "TableMaxReadUnits"}, "MaxWriteRequestUnits": {"Ref": "TableMaxWriteUnits"}}
    for owner in (table, *table["GlobalSecondaryIndexes"]):
        if owner.get("OnDemandThroughput") != caps:
            wrong.append(f"{owner.get('IndexName', 'Table')}: its cost has no cap")
    wrong += [f"Table: {key} is {table.get(key)}" for key, value in expected.items() if table.get(key) != value]
    bucket = resources["Bucket"]["Properties"]
    if set(bucket["PublicAccessBlockConfiguration"].values()) != {True}:
        wrong.append("Bucket: can be made public")
    expiring = [r.get("Prefix") for r in bucket["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in r]
    if expiring != ["up/"]:
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


def _of(stack, kind):
    resources = stack.nested_alarms["Resources"].values()
    return [r["Properties"] for r in resources if r["Type"] == kind]


def _metrics(alarm):
    """The metrics of an alarm: its own, or those of its expression."""
    if "MetricName" in alarm:
        return [alarm]
    return [m["MetricStat"]["Metric"] for m in alarm["Metrics"] if "MetricStat" in m]


def _mappings(stack):
    return [m["Properties"] for m in stack.of_type("AWS::Lambda::EventSourceMapping").values()]


def _function(mapping):
    """The logical name of the function that a mapping starts."""
    return mapping["FunctionName"]["Ref"]


def _list(value):
    return value if isinstance(value, list) else [value]


def _place(resource):
    """`Table`, `Table/index/GSI1`, `Bucket/v1/*`; anything else as it is."""
    if isinstance(resource, dict) and "Fn::GetAtt" in resource:
        name, attribute = resource["Fn::GetAtt"]
        return name if attribute == "Arn" else f"{name}.{attribute}"
    if isinstance(resource, dict) and "Ref" in resource:
        return resource["Ref"]
    if isinstance(resource, dict) and "Fn::Sub" in resource:
        return resource["Fn::Sub"].replace(".Arn}", "}").replace("${", "").replace("}", "")
    return str(resource)
