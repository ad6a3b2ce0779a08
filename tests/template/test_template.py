"""Applies each rule to template.yaml, then to copies that break the rule."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

import checks
from samtranslator.yaml_helper import yaml_parse
from stack import ROOT, Stack, alarms_text, manifest, template_text

STACK = Stack()
CARGO = manifest()
RELEASE = CARGO["workspace"]["package"]["version"]


def nested():
    """The templates of the nested stacks, by their places."""
    return {f"infra/{file.name}": yaml_parse(file.read_text()) for file in (ROOT / "infra").glob("*.yaml")}


def errors():
    """The rows of the error table, as the functions send them."""
    return json.loads((ROOT / "tests/conformance/vectors/errors.json").read_text())


def reserved_words():
    source = (ROOT / "shared/model/src/task/id.rs").read_text()
    table = re.search(r"const RESERVED: \[&str; \d+\] = \[(.*?)\];", source, re.S)
    return re.findall(r'"([^"]+)"', table.group(1))


def lint(template):
    """The findings of cfn-lint for a template, as written or transformed."""
    with tempfile.TemporaryDirectory() as folder:
        # The linter also reads the nested templates, by their paths.
        for nested in (ROOT / "infra").glob("*.yaml"):
            copy = pathlib.Path(folder, "infra", nested.name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(nested.read_text())
        file = pathlib.Path(folder, "template.json")
        file.write_text(json.dumps(template))
        # W2001: the transform has already replaced some parameters by their values.
        program = pathlib.Path(sys.executable).with_name("cfn-lint")
        command = [program, "--ignore-checks", "W2001", "--", file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip()
    return said if said or done.returncode == 0 else f"cfn-lint ended with {done.returncode}"


def logged():
    """The targets and fields of the lines that operators read."""
    files = ("runtime/src/telemetry/events.rs", "skill/src/model_line.rs")
    source = "".join((ROOT / "shared" / file).read_text() for file in files)
    return set(re.findall(r'"(a2a_lambda::\w+)"', source)) | set(re.findall(r"^\s+([a-z_0-9.]+) = ", source, re.M))


def cors_of_the_code():
    """The constants of the functions: methods, headers and seconds of a preflight."""
    source = (ROOT / "shared/runtime/src/http/cors.rs").read_text()
    texts = re.findall(r'pub const (\w+): &str = "([^"]+)";', source)
    [seconds] = re.findall(r"pub const MAX_AGE: u32 = (\d+);", source)
    return {name: re.sub(r"\\\n\s*", "", text) for name, text in texts} | {"MAX_AGE": seconds}


class TheTemplate(unittest.TestCase):
    maxDiff = None

    def test_has_no_fault_that_a_check_knows(self):
        """Each says what it looks at."""
        for check in (
            checks.integrations, checks.permissions, checks.path_parts, checks.public_paths, checks.doors,
            checks.rights, checks.limits, checks.places, checks.keys, checks.base_url, checks.retries,
            checks.settings, checks.queues, checks.schedules, checks.alarms, checks.environment, checks.logs,
            checks.mappings, checks.recursion, checks.state,
        ):
            with self.subTest(check.__name__):
                self.assertEqual(check(STACK), [])

    def test_shadows_no_tenant(self):
        self.assertEqual(checks.tenant_shadows(STACK, reserved_words()), [])

    def test_answers_a_preflight_as_the_functions_do(self):
        self.assertEqual(checks.cors(STACK, cors_of_the_code()), [])

    def test_has_an_authorizer_that_alone_reads_the_first_key(self):
        self.assertEqual(checks.authorizer(STACK), [])

    def test_has_the_routes_of_the_watch_router(self):
        self.assertEqual(checks.watch_router(STACK, CARGO), [])

    def test_a_closed_default_endpoint_needs_an_address_of_your_own(self):
        rule = STACK.source["Rules"]["ClosedEndpoint"]
        closed = {"Fn::Equals": [{"Ref": "DisableExecuteApi"}, "on"]}
        named = {"Fn::Not": [{"Fn::Equals": [{"Ref": "PublicUrl"}, ""]}]}
        self.assertEqual((rule["RuleCondition"], rule["Assertions"][0]["Assert"]), (closed, named))
        [server] = STACK.transformed["Resources"]["Api"]["Properties"]["Body"]["servers"]
        endpoint = server["x-amazon-apigateway-endpoint-configuration"]
        self.assertEqual(endpoint, {"disableExecuteApiEndpoint": {"Fn::If": ["NoExecuteApi", True, False]}})

    def test_refuses_a_flood_before_it_starts_a_function(self):
        self.assertEqual(checks.acl(STACK, errors()), [])

    def test_a_release_unwinds_at_a_panic(self):
        # cargo-lambda builds with "abort" unless the profile sets `panic`.
        profiles = {name: profile.get("panic") for name, profile in CARGO["profile"].items()}
        self.assertEqual(profiles["release"], "unwind")
        self.assertNotIn("abort", profiles.values())

    def test_two_agents_stages_and_regions_share_no_name(self):
        self.assertEqual(checks.names(STACK, nested().values(), "Reference"), [])

    def test_a_copied_agent_has_no_stack_before_it_is_named(self):
        own, copied = (tomllib.loads((ROOT / folder / "samconfig.toml").read_text()) for folder in (".", "template"))
        for stage in own.keys() - {"version"}:
            del own[stage]["deploy"]["parameters"]["stack_name"]
        self.assertEqual(copied, own)

    def test_a_deployed_parameter_is_in_force(self):
        self.assertEqual(checks.updates(STACK, RELEASE), [])
        self.assertEqual(checks.wired(STACK, nested()), [])

    def test_widgets_find_lines_that_functions_write(self):
        dashboard = yaml_parse((ROOT / "infra/dashboard.yaml").read_text())
        self.assertEqual(checks.widgets(dashboard, STACK, logged()), [])

    def test_has_a_function_for_every_directory_and_the_other_way_round(self):
        directories = sorted(path.parent.name for path in (ROOT / "functions").glob("*/Cargo.toml"))
        self.assertEqual(sorted(STACK.functions.values()), directories)

    def test_passes_the_linter_as_written_and_once_transformed(self):
        self.assertEqual(lint(STACK.source), "")
        self.assertEqual(lint(STACK.transformed), "")

    def test_the_stack_of_an_author_passes_the_linter(self):
        self.assertEqual(lint(yaml_parse((ROOT / "template/infra/own.yaml").read_text())), "")

    def test_has_the_table_that_the_store_creates_on_an_emulator(self):
        keys = (ROOT / "shared/store/src/keys.rs").read_text()
        table = (ROOT / "shared/aws/src/dynamodb/table.rs").read_text()
        named = dict(re.findall(r'const (\w+): &str = "(\w+)";', keys))
        numbers = re.findall(r"\(key::(\w+), ScalarAttributeType::N\)", table)
        projected = dict(re.findall(r"Self::(\w+) => &\[(.*?)\]", keys))

        def shape(name):
            pair = [(named[f"{name}{key}"], "N" if f"{name}{key}" in numbers else "S") for key in ("PK", "SK")]
            return pair, re.findall(r'"(\w+)"', projected[name[:-1].title() or "Table"])

        expected = {"": shape(""), named["LISTS"]: shape("LISTS_"), named["SWEEP"]: shape("SWEEP_")}
        self.assertEqual(checks.table_shape(STACK.transformed["Resources"]["Table"]["Properties"]), expected)

    def test_the_costs_say_how_many_resources_and_alarms_a_stack_has(self):
        text = (ROOT / "docs/costs.md").read_text()
        alarms = {name: it for name, it in STACK.alarms().items() if name not in ("RefusedCallsAlarm", "DeploymentAlarm")}
        watched = sum(len(checks._metrics(alarm)) for alarm in alarms.values())
        self.assertIn(f"{len(alarms)} alarms at $0.10 for each of their {watched} metrics", text)
        self.assertIn(f"`DeploymentAlarm`, {len(checks._metrics(STACK.alarms()['DeploymentAlarm']))} metrics", text)
        filters = [it for it in STACK.nested_alarms["Resources"].values() if it["Type"] == "AWS::Logs::MetricFilter"]
        notified = len([it for it in filters if it.get("Condition") != "HasAccessLog"])
        always = len([it for it in filters if "Condition" not in it])
        self.assertIn(f"{always} counts of the log at $0.30, {notified} with alarms", text)
        [number] = re.findall(r"\(this one has (\d+) after the transform\)", text)
        self.assertEqual(int(number), len(STACK.transformed["Resources"]))

    def test_the_runbook_has_each_alarm_in_its_group(self):
        section = (ROOT / "docs/operations.md").read_text().partition("### The alarms\n")[2].partition("\n#")[0]
        listed, group = {}, None
        for begins, name in re.findall(r"^\| (?:\*\*([^*]+):\*\* )?(\w+)(?: \([^|]*\))? \|", section, re.M)[1:]:
            group = begins or group
            listed[name] = group
        described = {name: it["AlarmDescription"].split(" - ")[0] for name, it in STACK.alarms().items() if name != "DeploymentAlarm"}
        self.assertEqual(listed, described)

    def test_a_trial_cannot_become_expensive(self):
        config = tomllib.loads((ROOT / "samconfig.toml").read_text())
        self.assertEqual(STACK.source["Parameters"]["DetailedApiMetrics"]["Default"], "off")
        for name in ("default", "dev"):
            given = config[name]["deploy"]["parameters"]["parameter_overrides"]
            self.assertNotIn("DetailedApiMetrics", given)
            self.assertLessEqual(int(given["TableMaxReadUnits"]), 500)
            self.assertLessEqual(int(given["TableMaxWriteUnits"]), 200)

    def test_its_parameters_are_all_that_a_deployment_sets_and_needs(self):
        config = tomllib.loads((ROOT / "samconfig.toml").read_text())
        self.assertEqual([name for name, it in STACK.source["Parameters"].items() if "Default" not in it], [])
        for name in ("default", "dev", "staging", "prod"):
            given = config[name]["deploy"]["parameters"]["parameter_overrides"]
            self.assertEqual(given["Stage"], "dev" if name == "default" else name)
        changes = yaml_parse((ROOT / "template/infra/changes.yaml").read_text())
        for folder in (ROOT, ROOT / "template"):
            self.assertEqual(checks.given(STACK, (folder / "samconfig.toml").read_text(), changes), [])


# By the check that finds it: a mistake, what the template has, and what the copy has in its place.
MISTAKES = {
    checks.permissions: [
        ("a path whose colon is encoded", "*message*send", "*message:send"),
    ],
    checks.doors: [
        ("a card that strangers read in a loop", "ThrottlingRateLimit: 20", "ThrottlingRateLimit: 1000"),
        ("a card that strangers read in a loop", 'agent.json", HttpMethod: HEAD', 'agent.json", HttpMethod: PUT'),
        ("a card that strangers read in a loop", "ThrottlingBurstLimit: 100}", "ThrottlingBurstLimit: 100, CachingEnabled: true}"),
    ],
    checks.alarms: [
        ("a deployment that watches what nobody counts", "MetricName: FailedTurns}", "MetricName: TurnsFailed}"),
    ],
    checks.schedules: [
        ("a sweep that stops without a sound", "([2-9]|10) minutes", "([2-9]|[1-9][0-9]+) minutes"),
    ],
    checks.recursion: [
        ("webhooks that lambda ends after 16 messages", "      RecursiveLoop: Allow\n      Timeout: 60\n", "      Timeout: 60\n"),
        ("turns that lambda ends after 16 messages", "      RecursiveLoop: Allow\n      Timeout: 900\n", "      Timeout: 900\n"),
    ],
    checks.logs: [
        ("a log level that drops lines of metrics", "!If [LogsDebug, DEBUG, INFO]", "WARN"),
        ("an access log with paths of tasks", "$context.resourcePath", "$context.path"),
    ],
    checks.state: [
        ("an index without a cap", "          OnDemandThroughput: {MaxReadRequestUnits: !Ref TableMaxReadUnits, MaxWriteRequestUnits: !Ref TableMaxWriteUnits}\n", ""),
        ("a table that is deleted with the stack", "    DeletionPolicy: RetainExceptOnCreate\n", ""),
        ("a table that stops the rollback of its first deployment", "      BillingMode: PAY_PER_REQUEST\n", "      BillingMode: PAY_PER_REQUEST\n      DeletionProtectionEnabled: true\n"),
        ("a stream without new images", "StreamViewType: NEW_IMAGE", "StreamViewType: KEYS_ONLY"),
        ("objects of tasks that expire by age", "            Prefix: up/\n            ExpirationInDays", "            Prefix: v1/\n            ExpirationInDays"),
        ("a bucket that loses objects of a restored table", "VersioningConfiguration: {Status: Enabled}", "VersioningConfiguration: {Status: Suspended}"),
        ("a bucket that loses objects of a restored table", "NoncurrentDays: 36", "NoncurrentDays: 30"),
    ],
    # One for each way in which a role can differ from its row: the comparison is exact.
    checks.rights: [
        ("a public function that could read tasks", '{"dynamodb:LeadingKeys": ["B#brake", "M#*", "U#*"]}', '{"dynamodb:LeadingKeys": ["*"]}'),
        ("a public function that could read tasks", '              Condition: {StringEquals: {"dynamodb:Select": COUNT}}\n', ""),
        ("a reader that could write tasks", '                Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["M#*"]}}\n', ""),
        ("a right too many", "[s3:GetObject]", "[s3:GetObject, s3:DeleteObject]"),
        ("a right on everything", "Resource: !Sub ${Bucket.Arn}/v1/*", 'Resource: "*"'),
        ("a wildcard action", "Action: [s3:GetObject]", "Action: s3:*"),
        ("a managed policy with broad rights", "      Policies:\n        - !Ref", "      Policies:\n        - AmazonS3FullAccess\n        - !Ref"),
        ("a reader that could change a task", '["T#*#R#limits", "S#streams#*"]', '["T#*", "S#streams#*"]'),
        ("a sweep that cannot send a turn again", "Action: [sqs:GetQueueAttributes, sqs:SendMessage]", "Action: [sqs:GetQueueAttributes]"),
        ("a function that could write to every log group", "        - !Ref LimitsOfFunctions\n", ""),
    ],
    checks.integrations: [
        ("the cloudformation spelling of streaming", "ResponseTransferMode: RESPONSE_STREAM", "ResponseTransferMode: STREAM"),
        ("a stream with the timeout of a buffered call", ", TimeoutInMillis: 900000", ""),
        ("a streamed answer behind a buffered function", 'Method: POST, Path: "/message:send"', 'Method: POST, Path: "/message:send", ResponseTransferMode: RESPONSE_STREAM'),
    ],
    checks.path_parts: [
        ("two variables side by side", 'Path: "/tasks/{id}/get"', 'Path: "/tasks/{task}/get"'),
    ],
    checks.public_paths: [
        ("a public call", "Method: POST, Path: /tasks/send}", "Method: POST, Path: /tasks/send, Auth: {Authorizer: NONE}}"),
        ("a card behind the authorizer", ", Auth: {Authorizer: NONE}", ""),
    ],
    checks.authorizer: [
        ("a function that reads the first key", "!GetAtt RelayFailures.Arn]", "!GetAtt RelayFailures.Arn, !Ref FirstKeySecret]"),
        ("a decision that is used for an hour", "ReauthorizeEvery: !Ref ReauthorizeEvery", "ReauthorizeEvery: 3600"),
        ("an authorizer that must be supplied", "!If [OwnAuthorizer, !Ref AuthorizerFunctionArn, !GetAtt AuthorizerFunction.Arn]", "!GetAtt AuthorizerFunction.Arn"),
    ],
    checks.settings: [
        ("dev identities in a deployed function", "A2A_AUTH: gateway", "A2A_AUTH: dev"),
        ("a function that sam build skips", "    Metadata: {BuildMethod: rust-cargolambda}\n", ""),
        ("a function that sam build skips", "CodeUri: functions/rpc/", "CodeUri: target/lambda/rpc/"),
        ("a base url that is not that of the stage", "        A2A_AUTH: gateway\n", "        A2A_AUTH: gateway\n        A2A_PUBLIC_URL: !Ref PublicUrl\n"),
        ("functions that ignore the parameter for tracing", "    Tracing: !Ref Tracing\n", ""),
        ("a secret where none is needed", "          A2A_WORK_QUEUE_URL: !Ref WorkQueue\n", "          A2A_WORK_QUEUE_URL: !Ref WorkQueue\n          A2A_SECRET_KEY_ID: none\n"),
        ("a secret where none is needed", "          A2A_WORK_QUEUE_URL: !Ref WorkQueue\n", "          A2A_WORK_QUEUE_URL: !Ref WorkQueue\n          A2A_SECRET_KEY: none\n"),
    ],
    checks.base_url: [
        ("a base url that is not that of the stage", "        publicUrl: !If [OwnUrl, !Ref PublicUrl,", "        url: !If [OwnUrl, !Ref PublicUrl,"),
        ("a base url that is not that of the stage", "OwnUrl: !Not [!Equals [!Ref PublicUrl", "OwnUrl: !Not [!Equals [!Ref Stage"),
    ],
    checks.retries: [
        ("a sweep that lambda repeats", "EventInvokeConfig: {MaximumRetryAttempts: 0}", "EventInvokeConfig: {MaximumRetryAttempts: 2}"),
    ],
    checks.queues: [
        ("a queue that shows a message while its worker runs", "VisibilityTimeout: 900", "VisibilityTimeout: 60"),
        ("a queue without dead letters", "      RedrivePolicy: {deadLetterTargetArn: !GetAtt WorkDeadLetters.Arn, maxReceiveCount: 100}\n", ""),
        ("a queue that gives up after three receives", "maxReceiveCount: 100", "maxReceiveCount: 3"),
        ("unreadable turns among the dead letters of webhooks", "A2A_DEAD_LETTERS_URL: !Ref WorkDeadLetters", "A2A_DEAD_LETTERS_URL: !Ref PushDeadLetters"),
        ("dead letters that expire too early", "MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 345600"),
        ("a fifo queue without fairness", "      VisibilityTimeout: 90\n", "      VisibilityTimeout: 90\n      FifoQueue: true\n"),
    ],
    checks.mappings: [
        ("several turns in one invocation", "BatchSize: 1\n", "BatchSize: 10\n"),
        ("a relay that misses the first records", "TRIM_HORIZON", "LATEST"),
        ("a failed record that fails its whole batch", "      FunctionResponseTypes: [ReportBatchItemFailures]\n", ""),
        ("a failed record that fails its whole batch", "      BisectBatchOnFunctionError: true\n", ""),
        ("a relay that gives up early or without a destination", "MaximumRetryAttempts: -1", "MaximumRetryAttempts: 20"),
        ("a relay that gives up early or without a destination", "MaximumRecordAgeInSeconds: 86400", "MaximumRecordAgeInSeconds: 3600"),
        ("a relay that gives up early or without a destination", "OnFailure: {Destination: !GetAtt RelayFailures.Arn}", "OnFailure: {Destination: !GetAtt WorkQueue.Arn}"),
        ("a relay that every write starts", '"dispatch":{"N":[{"exists":true}]}', '"version":{"N":[{"exists":true}]}'),
        ("a relay without the filter for events", "          - Pattern: '{\"dynamodb\":{\"Keys\":{\"SK\":{\"S\":[\"META\"]}},\"NewImage\":{\"notify\":{\"N\":[{\"exists\":true}]}}}}'\n", ""),
        ("workers without a concurrency limit", "      ScalingConfig: {MaximumConcurrency: !Ref WorkerConcurrency}\n", ""),
        ("a sweep without a schedule", "      Events:\n        Interval: {Type: Schedule, Properties: {Schedule: !Ref SweepInterval}}\n", ""),
    ],
    checks.limits: [
        ("a function that could write to every log group", "NotResource: !GetAtt LogsOfReference.Arn", 'NotResource: "*"'),
        ("a function that could write to every log group", '          - {Effect: Deny, Action: ["logs:CreateLogGroup"], Resource: "*"}\n', ""),
    ],
    checks.places: [
        ("a webhook function in a vpc", "      RecursiveLoop: Allow\n      Timeout: 60\n", "      Timeout: 60\n      VpcConfig: {SubnetIds: !Split [',', !Ref VpcSubnetIds]}\n"),
        ("a webhook function in a vpc", "      MemorySize: !Ref MemorySize\n", ""),
    ],
    checks.keys: [
        ("a bucket without the key of the operator", ", KMSMasterKeyID: !Ref KmsKeyArn}, {", "}, {"),
    ],
}

# The same for the nested template of the alarms.
MISTAKES_OF_ALARMS = {
    checks.doors: [
        ("a card that strangers read in a loop", '"${StackName}-agent-card"', '"${StackName}-rpc"'),
    ],
    checks.alarms: [
        ("alarms that notify no person", "AlarmActions: [!Ref AlarmTopicArn]", "AlarmActions: []"),
        ("alarms without a topic", "    Type: AWS::CloudWatch::Alarm\n    Condition: Notifies\n", "    Type: AWS::CloudWatch::Alarm\n"),
        ("a deployment that watches what nobody counts", "    Type: AWS::Logs::MetricFilter\n    Properties:", "    Type: AWS::Logs::MetricFilter\n    Condition: Notifies\n    Properties:"),
        ("an alarm with eleven metrics", "        - {Id: sweep, ReturnData: false", 2 * "        - {Id: sweep, ReturnData: false, MetricStat: {Stat: Sum, Period: 300, Metric: {Namespace: AWS/Lambda, MetricName: Errors, Dimensions: [{Name: FunctionName, Value: !Sub \"${StackName}-sweep\"}]}}}\n" + "        - {Id: sweep, ReturnData: false"),
        ("an alarm in no group", "The agent fails - ", "Look out - "),
        ("an alarm on a function that does not exist", '"${StackName}-ops"', '"${StackName}-operations"'),
        ("an alarm on a metric that nobody publishes", "MetricName: Throttles", "MetricName: Throttled"),
        ("an alarm on a metric that nobody publishes", "MetricName: RefusedCalls}}}", "MetricName: Refused}}}"),
        ("an index without a throttle alarm", ", {Name: GlobalSecondaryIndexName, Value: GSI2}", ""),
    ],
    checks.schedules: [
        ("a sweep that stops without a sound", "TreatMissingData: breaching", "TreatMissingData: notBreaching"),
        ("a sweep without an alarm", '"${StackName}-sweep"', '"${StackName}-worker"'),
        ("a relay without an age alarm", "MetricName: IteratorAge", "MetricName: Duration"),
    ],
    checks.recursion: [
        ("webhooks that lambda ends after 16 messages", "RecursiveInvocationsDropped", "Errors"),
    ],
    checks.queues: [
        ("dead letters without an alarm", "Value: !Ref WorkDeadLetters", "Value: !Ref WorkQueue"),
        ("relay failures without an alarm", "Value: !Ref RelayFailures", "Value: !Ref WorkQueue"),
    ],
}


class ACopyWithTheMistakeIsFound(unittest.TestCase):
    """Every mistake here passes `sam validate --lint`, or passed it once."""

    def broken(self, old, new, count=1):
        text = template_text()
        self.assertIn(old, text)
        return Stack(text.replace(old, new, count))

    def broken_alarms(self, old, new):
        text = alarms_text()
        self.assertIn(old, text)
        return Stack(alarms=text.replace(old, new))

    def test_that_a_check_knows(self):
        tables = ((MISTAKES, lambda old, new: self.broken(old, new)), (MISTAKES_OF_ALARMS, self.broken_alarms))
        for mistakes, copied in tables:
            for check, rows in mistakes.items():
                for name, old, new in rows:
                    with self.subTest(name):
                        self.assertTrue(check(copied(old, new)))

    def test_a_parameter_that_sam_drops(self):
        text = (ROOT / "samconfig.toml").read_text()
        for old, new, said in (
            ('AccessLog = "setup"', 'AlarmEmial = "a@b.c"', "staging: the template does not have AlarmEmial; the nearest name is AlarmEmail"),
            ("#   AlarmEmail =", "#   AlarmMail =", "a comment: the template does not have AlarmMail; the nearest name is AlarmEmail"),
            ('Stage = "prod"', 'Stage = "production"', "prod: Stage is production"),
        ):
            self.assertEqual(checks.given(STACK, text.replace(old, new, 1)), [said])
        changes = yaml_parse("Resources:\n  WorkerFuntion:\n    Properties: {Timeout: 60}\n  Mine: {Type: AWS::SQS::Queue}\n")
        said = "changes.yaml: the template does not have WorkerFuntion; the nearest name is WorkerFunction"
        self.assertEqual(checks.given(STACK, text, changes), [said])

    def test_a_preflight_that_says_less_than_the_functions(self):
        self.assertTrue(checks.cors(self.broken("idempotency-key, ", ""), cors_of_the_code()))

    def test_a_preflight_that_needs_a_caller(self):
        line = "        AddDefaultAuthorizerToCorsPreflight: false\n"
        self.assertTrue(checks.cors(self.broken(line, ""), cors_of_the_code()))

    def test_pages_of_every_origin_without_a_parameter(self):
        self.assertTrue(checks.cors(self.broken("'https://off.invalid'", "'*'"), cors_of_the_code()))
        old = "- AllowedOrigins: [!Ref CorsOrigin]"
        self.assertTrue(checks.cors(self.broken(old, '- AllowedOrigins: ["*"]'), cors_of_the_code()))

    def test_a_widget_that_shows_nothing(self):
        text = (ROOT / "infra/dashboard.yaml").read_text()
        for old, new in (("`a2a.skill`", "`skill`"), ("a2a_lambda::start", "a2a_lambda::begin"), ("-relay", "-relays"), ("${Logs}", "logs")):
            self.assertIn(old, text)
            self.assertTrue(checks.widgets(yaml_parse(text.replace(old, new)), STACK, logged()), old)

    def test_an_agent_that_a_deployment_of_another_replaces(self):
        name = "      LogGroupName: !Sub /a2a-lambda/${AWS::StackName}\n"
        self.assertTrue(checks.names(self.broken(name, ""), nested().values(), "Reference"))
        self.assertTrue(checks.names(self.broken("LogsOfReference", "Logs", 9), nested().values(), "Reference"))

    def test_a_dashboard_of_all_regions(self):
        copy = yaml_parse((ROOT / "infra/dashboard.yaml").read_text().replace("!Sub ${StackName}-${AWS::Region}", "!Ref StackName"))
        self.assertTrue(checks.names(STACK, [copy], "Reference"))

    def test_settings_that_no_program_has_seen(self):
        line = "    DependsOn: CheckedSettings\n"
        self.assertTrue(checks.updates(self.broken(line, ""), RELEASE))
        self.assertTrue(checks.updates(self.broken("      Settings: !Ref Settings\n", ""), RELEASE))
        self.assertTrue(checks.updates(self.broken(f'      Release: "{RELEASE}"\n', ""), RELEASE))
        self.assertTrue(checks.updates(self.broken('      Form: "', '      Form: "1'), RELEASE))
        self.assertTrue(checks.environment(self.broken("MaxLength: 2048", "MaxLength: 4000")))

    def test_functions_whose_callers_keep_a_version(self):
        line = "    MemorySize: 256\n"
        self.assertTrue(checks.updates(self.broken(line, line + "    AutoPublishAlias: live\n"), RELEASE))

    def test_a_parameter_that_changes_nothing(self):
        self.assertTrue(checks.wired(self.broken("MaximumConcurrency: !Ref PushConcurrency", "MaximumConcurrency: 50"), nested()))
        self.assertTrue(checks.wired(self.broken("RetentionInDays: !Ref LogRetentionDays", "RetentionInDays: 30", 2), nested()))

        dashboard = nested()["infra/dashboard.yaml"]
        dashboard["Parameters"]["Stage"] = {"Type": "String"}
        self.assertEqual(len(checks.wired(STACK, {"infra/dashboard.yaml": dashboard})), 2)

    def test_a_rate_that_answers_or_counts_otherwise(self):
        for old, new in (("ResponseCode: 429", "ResponseCode: 403"), ('{Name: Retry-After, Value: "60"}', '{Name: Retry-After, Value: "1"}'),
                         ("Limit: 60000", "Limit: 6000"), ("!GetAtt Rates.Arn, ", "!GetAtt Rates.Id, ")):
            self.assertTrue(checks.acl(self.broken(old, new), errors()), old)
        self.assertTrue(checks.acl(self.broken("SampledRequestsEnabled: false", "SampledRequestsEnabled: true"), errors()))

    def test_an_api_that_keeps_its_parameters(self):
        self.assertTrue(checks.updates(self.broken("      AlwaysDeploy: true\n", ""), RELEASE))

    def test_a_verb_in_the_part_of_the_id(self):
        copy = self.broken('Method: POST, Path: "/tasks/{id}"', 'Method: POST, Path: "/tasks/{id}:cancel"')
        self.assertTrue(checks.path_parts(copy))
        self.assertTrue(checks.watch_router(copy, CARGO))

    def test_a_path_that_shadows_a_tenant(self):
        copy = self.broken("Path: /agent.json", "Path: /acme")
        self.assertTrue(checks.tenant_shadows(copy, reserved_words()))

    def test_a_runtime_that_does_not_exist(self):
        copy = self.broken("provided.al2023", "provided.al1999")
        self.assertTrue(checks.settings(copy))
        self.assertIn("provided.al1999", lint(copy.transformed))


if __name__ == "__main__":
    unittest.main()
