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


# The IAM action that an SDK call, or a part of a transaction, needs.
ACTIONS = {
    r"\.get_item\(\)": "dynamodb:GetItem",
    r"\.batch_get_item\(\)": "dynamodb:BatchGetItem",
    r"\.query\(\)": "dynamodb:Query",
    r"\.scan\(\)": "dynamodb:Scan",
    r"\.batch_write_item\(\)": "dynamodb:BatchWriteItem",
    r"\.put_item\(\)|\bPut::builder\(\)": "dynamodb:PutItem",
    r"\.update_item\(\)|\bUpdate::builder\(\)": "dynamodb:UpdateItem",
    r"\.delete_item\(\)|\bDelete::builder\(\)": "dynamodb:DeleteItem",
    r"\bConditionCheck::builder\(\)": "dynamodb:ConditionCheckItem",
    r"\.get_object\(\)|\.head_object\(\)": "s3:GetObject",
    r"\.put_object\(\)|\.copy_object\(\)|\.(create|complete)_multipart_upload\(\)|\.upload_part(_copy)?\(\)": "s3:PutObject",
    r"\.abort_multipart_upload\(\)": "s3:AbortMultipartUpload",
    r"\.delete_objects?\(\)": "s3:DeleteObject",
    r"\.list_objects_v2\(\)": "s3:ListBucket",
    r"\.send_message(_batch)?\(\)": "sqs:SendMessage",
    r"\.change_message_visibility(_batch)?\(\)": "sqs:ChangeMessageVisibility",
    r"\.receive_message\(\)": "sqs:ReceiveMessage",
    r"\.delete_message(_batch)?\(\)": "sqs:DeleteMessage",
    r"\.get_queue_attributes\(\)": "sqs:GetQueueAttributes",
    r"\.get_secret_value\(\)": "secretsmanager:GetSecretValue",
}


def store_sources():
    """The stores on AWS, without their tests."""
    return [file for file in (ROOT / "shared/aws/src").rglob("*.rs") if "tests" not in file.stem]


def calls(source):
    production = source.split("#[cfg(test)]")[0]
    return {action for pattern, action in ACTIONS.items() if re.search(pattern, production)}


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

    def test_streams_only_the_streaming_routes(self):
        self.assertEqual(checks.integrations(STACK), [])

    def test_api_gateway_may_start_the_function_of_each_route(self):
        self.assertEqual(checks.permissions(STACK), [])

    def test_has_no_path_part_the_gateway_refuses(self):
        self.assertEqual(checks.path_parts(STACK), [])

    def test_shadows_no_tenant(self):
        self.assertEqual(checks.tenant_shadows(STACK, reserved_words()), [])

    def test_keeps_all_but_the_card_behind_the_authorizer(self):
        self.assertEqual(checks.public_paths(STACK), [])

    def test_public_paths_have_low_rates_and_no_cache(self):
        self.assertEqual(checks.doors(STACK), [])

    def test_answers_a_preflight_as_the_functions_do(self):
        self.assertEqual(checks.cors(STACK, cors_of_the_code()), [])

    def test_has_an_authorizer_that_alone_reads_the_first_key(self):
        self.assertEqual(checks.authorizer(STACK), [])
        keys = (ROOT / "shared/store/src/keys.rs").read_text()
        [partition] = re.findall(r'const API_KEYS: &str = "(.+)";', keys)
        condition = checks.CONDITIONS["authorizer", "dynamodb:GetItem"]
        self.assertEqual(list(condition.values()), [{"dynamodb:LeadingKeys": [partition]}])

    def test_has_the_routes_of_the_watch_router(self):
        self.assertEqual(checks.watch_router(STACK, CARGO), [])

    def test_grants_exactly_what_each_function_needs(self):
        self.assertEqual(checks.rights(STACK), [])

    def test_lets_the_functions_write_to_one_log_group(self):
        self.assertEqual(checks.limits(STACK), [])

    def test_skills_have_the_memory_the_network_and_the_boundary_of_the_operator(self):
        self.assertEqual(checks.places(STACK), [])

    def test_a_key_of_the_operator_encrypts_what_is_stored(self):
        self.assertEqual(checks.keys(STACK), [])

    def test_a_closed_default_endpoint_needs_an_address_of_your_own(self):
        rule = STACK.source["Rules"]["ClosedEndpoint"]
        closed = {"Fn::Equals": [{"Ref": "DisableExecuteApi"}, "on"]}
        named = {"Fn::Not": [{"Fn::Equals": [{"Ref": "PublicUrl"}, ""]}]}
        self.assertEqual((rule["RuleCondition"], rule["Assertions"][0]["Assert"]), (closed, named))
        [server] = STACK.transformed["Resources"]["Api"]["Properties"]["Body"]["servers"]
        endpoint = server["x-amazon-apigateway-endpoint-configuration"]
        self.assertEqual(endpoint, {"disableExecuteApiEndpoint": {"Fn::If": ["NoExecuteApi", True, False]}})

    def test_tells_the_functions_their_base_url(self):
        self.assertEqual(checks.base_url(STACK), [])

    def test_refuses_a_flood_before_it_starts_a_function(self):
        self.assertEqual(checks.acl(STACK, errors()), [])

    def test_does_not_repeat_a_failed_sweep(self):
        self.assertEqual(checks.retries(STACK), [])

    def test_a_release_unwinds_at_a_panic(self):
        # cargo-lambda builds with "abort" unless the profile sets `panic`.
        profiles = {name: profile.get("panic") for name, profile in CARGO["profile"].items()}
        self.assertEqual(profiles["release"], "unwind")
        self.assertNotIn("abort", profiles.values())

    def test_configures_every_function(self):
        self.assertEqual(checks.settings(STACK), [])

    def test_every_queue_has_an_alarm_and_dead_letters(self):
        self.assertEqual(checks.queues(STACK), [])

    def test_alarms_report_failures_of_scheduled_functions(self):
        self.assertEqual(checks.schedules(STACK), [])

    def test_every_part_has_alarms_and_every_alarm_watches_a_part(self):
        self.assertEqual(checks.alarms(STACK), [])

    def test_two_agents_stages_and_regions_share_no_name(self):
        self.assertEqual(checks.names(STACK, nested().values(), "Reference"), [])

    def test_a_copied_agent_has_no_stack_before_it_is_named(self):
        own, copied = (tomllib.loads((ROOT / folder / "samconfig.toml").read_text()) for folder in (".", "template"))
        for stage in own.keys() - {"version"}:
            del own[stage]["deploy"]["parameters"]["stack_name"]
        self.assertEqual(copied, own)

    def test_the_variables_of_a_function_fit_into_4_kb(self):
        self.assertEqual(checks.environment(STACK), [])

    def test_a_deployed_parameter_is_in_force(self):
        self.assertEqual(checks.updates(STACK, RELEASE), [])
        self.assertEqual(checks.wired(STACK, nested()), [])

    def test_widgets_find_lines_that_functions_write(self):
        dashboard = yaml_parse((ROOT / "infra/dashboard.yaml").read_text())
        self.assertEqual(checks.widgets(dashboard, STACK, logged()), [])

    def test_logs_keep_metrics_and_reports_and_no_ids_of_tasks(self):
        self.assertEqual(checks.logs(STACK), [])

    def test_event_sources_start_the_right_functions(self):
        self.assertEqual(checks.mappings(STACK), [])

    def test_a_function_that_sends_itself_messages_may_do_so(self):
        self.assertEqual(checks.recursion(STACK), [])

    def test_data_outlives_the_stack(self):
        self.assertEqual(checks.state(STACK), [])

    def test_has_a_function_for_every_directory_and_the_other_way_round(self):
        directories = sorted(path.parent.name for path in (ROOT / "functions").glob("*/Cargo.toml"))
        self.assertEqual(sorted(STACK.functions.values()), directories)

    def test_passes_the_linter_as_written_and_once_transformed(self):
        self.assertEqual(lint(STACK.source), "")
        self.assertEqual(lint(STACK.transformed), "")

    def test_the_stack_of_an_author_passes_the_linter(self):
        self.assertEqual(lint(yaml_parse((ROOT / "template/infra/own.yaml").read_text())), "")

    def test_grants_writers_the_calls_the_stores_make_and_no_others(self):
        made = set().union(*(calls(file.read_text()) for file in store_sources()))
        granted = set().union(*(actions for row in checks.RIGHTS.values() for actions in row.values()))
        self.assertEqual(granted - checks.POLLING, made - checks.OPERATOR)
        self.assertEqual(granted & checks.OPERATOR, set())

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

    def test_operations_say_how_many_resources_and_alarms_a_stack_has(self):
        text = (ROOT / "docs/operations.md").read_text()
        alarms = {name: it for name, it in STACK.alarms().items() if name not in ("RefusedCallsAlarm", "DeploymentAlarm")}
        watched = sum(len(checks._metrics(alarm)) for alarm in alarms.values())
        self.assertIn(f"{len(alarms)} alarms at $0.10 for each of their {watched} metrics", text)
        [number] = re.findall(r"\(this one has (\d+) after the transform\)", text)
        self.assertEqual(int(number), len(STACK.transformed["Resources"]))

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

    def test_a_path_whose_colon_is_encoded(self):
        self.assertTrue(checks.permissions(self.broken("*message*send", "*message:send")))

    def test_a_card_that_strangers_read_in_a_loop(self):
        self.assertTrue(checks.doors(self.broken("ThrottlingRateLimit: 20", "ThrottlingRateLimit: 1000")))
        self.assertTrue(checks.doors(self.broken("agent.json\", HttpMethod: HEAD", "agent.json\", HttpMethod: PUT")))
        self.assertTrue(checks.doors(self.broken("ThrottlingBurstLimit: 100}", "ThrottlingBurstLimit: 100, CachingEnabled: true}")))
        self.assertTrue(checks.doors(self.broken_alarms('"${StackName}-agent-card"', '"${StackName}-rpc"')))

    def test_a_widget_that_shows_nothing(self):
        text = (ROOT / "infra/dashboard.yaml").read_text()
        for old, new in (("`a2a.skill`", "`skill`"), ("a2a_lambda::start", "a2a_lambda::begin"), ("-relay", "-relays"), ("${Logs}", "logs")):
            self.assertIn(old, text)
            self.assertTrue(checks.widgets(yaml_parse(text.replace(old, new)), STACK, logged()), old)

    def test_alarms_that_notify_no_person(self):
        self.assertTrue(checks.alarms(self.broken("    Condition: HasAlarms\n", "")))
        self.assertTrue(checks.alarms(self.broken_alarms("AlarmActions: [!Ref AlarmTopicArn]", "AlarmActions: []")))

    def test_a_sweep_that_stops_without_a_sound(self):
        self.assertTrue(checks.schedules(self.broken_alarms("TreatMissingData: breaching", "TreatMissingData: notBreaching")))
        self.assertTrue(checks.schedules(self.broken("([2-9]|10) minutes", "([2-9]|[1-9][0-9]+) minutes")))

    def test_an_alarm_on_a_function_that_does_not_exist(self):
        self.assertTrue(checks.alarms(self.broken_alarms('"${StackName}-ops"', '"${StackName}-operations"')))

    def test_an_alarm_on_a_metric_that_nobody_publishes(self):
        self.assertTrue(checks.alarms(self.broken_alarms("MetricName: Throttles", "MetricName: Throttled")))
        self.assertTrue(checks.alarms(self.broken_alarms("MetricName: RefusedCalls}\n            Period", "MetricName: Refused}\n            Period")))

    def test_an_index_without_a_throttle_alarm(self):
        name = ", {Name: GlobalSecondaryIndexName, Value: GSI2}"
        self.assertTrue(checks.alarms(self.broken_alarms(name, "")))

    def test_an_agent_that_a_deployment_of_another_replaces(self):
        name = "      LogGroupName: !Sub /a2a-lambda/${AWS::StackName}\n"
        self.assertTrue(checks.names(self.broken(name, ""), nested().values(), "Reference"))
        self.assertTrue(checks.names(self.broken("LogsOfReference", "Logs", 9), nested().values(), "Reference"))

    def test_a_dashboard_of_all_regions(self):
        copy = yaml_parse((ROOT / "infra/dashboard.yaml").read_text().replace("!Sub ${StackName}-${AWS::Region}", "!Ref StackName"))
        self.assertTrue(checks.names(STACK, [copy], "Reference"))

    def test_webhooks_that_lambda_ends_after_16_messages(self):
        self.assertTrue(checks.recursion(self.broken("      RecursiveLoop: Allow\n", "")))
        self.assertTrue(checks.recursion(self.broken_alarms("RecursiveInvocationsDropped", "Errors")))

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
        self.assertTrue(checks.wired(self.broken("MaximumConcurrency: !Ref WorkerConcurrency", "MaximumConcurrency: 50"), nested()))
        self.assertTrue(checks.wired(self.broken("RetentionInDays: !Ref LogRetentionDays", "RetentionInDays: 30", 2), nested()))

        dashboard = nested()["infra/dashboard.yaml"]
        dashboard["Parameters"]["Stage"] = {"Type": "String"}
        self.assertEqual(len(checks.wired(STACK, {"infra/dashboard.yaml": dashboard})), 2)

    def test_a_rate_that_answers_or_counts_otherwise(self):
        for old, new in (("ResponseCode: 429", "ResponseCode: 403"), ('"retryAfter":"60"},"reason":"RATE_LIMITED"}],"message":"rate limit exceeded","status":"RESOURCE_EXHAUSTED"}}\'}\n      Rules', '"retryAfter":"1"}}]}}\'}\n      Rules'),
                         ("Limit: 60000", "Limit: 6000"), ("!GetAtt Rates.Arn, ", "!GetAtt Rates.Id, ")):
            self.assertTrue(checks.acl(self.broken(old, new), errors()), old)
        self.assertTrue(checks.acl(self.broken("SampledRequestsEnabled: false", "SampledRequestsEnabled: true"), errors()))

    def test_an_api_that_keeps_its_parameters(self):
        self.assertTrue(checks.updates(self.broken("      AlwaysDeploy: true\n", ""), RELEASE))

    def test_a_log_level_that_drops_lines_of_metrics(self):
        self.assertTrue(checks.logs(self.broken("!If [LogsDebug, DEBUG, INFO]", "WARN")))

    def test_an_access_log_with_paths_of_tasks(self):
        self.assertTrue(checks.logs(self.broken("$context.resourcePath", "$context.path")))

    def test_an_index_without_a_cap(self):
        line = "          OnDemandThroughput: {MaxReadRequestUnits: !Ref TableMaxReadUnits, MaxWriteRequestUnits: !Ref TableMaxWriteUnits}\n"
        self.assertTrue(checks.state(self.broken(line, "")))

    def test_a_public_function_that_could_read_tasks(self):
        condition = """              Resource: !GetAtt Table.Arn
              Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["M#*"]}}
"""
        self.assertTrue(checks.rights(self.broken(condition, "              Resource: !GetAtt Table.Arn\n")))
        count = '              Condition: {StringEquals: {"dynamodb:Select": COUNT}}\n'
        self.assertTrue(checks.rights(self.broken(count, "")))

    def test_a_reader_that_could_write_tasks(self):
        condition = """                Condition: {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["M#*"]}}\n"""
        self.assertTrue(checks.rights(self.broken(condition, "")))

    def test_the_cloudformation_spelling_of_streaming(self):
        copy = self.broken("ResponseTransferMode: RESPONSE_STREAM", "ResponseTransferMode: STREAM")
        self.assertTrue(checks.integrations(copy))

    def test_a_stream_with_the_timeout_of_a_buffered_call(self):
        copy = self.broken(", TimeoutInMillis: 900000", "")
        self.assertTrue(checks.integrations(copy))

    def test_a_streamed_answer_behind_a_buffered_function(self):
        route = 'Method: POST, Path: "/message:send"'
        copy = self.broken(route, route + ", ResponseTransferMode: RESPONSE_STREAM")
        self.assertTrue(checks.integrations(copy))

    def test_a_verb_in_the_part_of_the_id(self):
        copy = self.broken('Method: POST, Path: "/tasks/{id}"', 'Method: POST, Path: "/tasks/{id}:cancel"')
        self.assertTrue(checks.path_parts(copy))
        self.assertTrue(checks.watch_router(copy, CARGO))

    def test_two_variables_side_by_side(self):
        copy = self.broken('Path: "/tasks/{id}/get"', 'Path: "/tasks/{task}/get"')
        self.assertTrue(checks.path_parts(copy))

    def test_a_path_that_shadows_a_tenant(self):
        copy = self.broken("Path: /agent.json", "Path: /acme")
        self.assertTrue(checks.tenant_shadows(copy, reserved_words()))

    def test_a_public_call(self):
        route = "Method: POST, Path: /tasks/send"
        copy = self.broken(route + "}", route + ", Auth: {Authorizer: NONE}}")
        self.assertTrue(checks.public_paths(copy))

    def test_a_card_behind_the_authorizer(self):
        copy = self.broken(", Auth: {Authorizer: NONE}", "")
        self.assertTrue(checks.public_paths(copy))

    def test_an_authorizer_that_could_read_tasks(self):
        line = '              Condition: {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["A#keys"]}}\n'
        self.assertTrue(checks.rights(self.broken(line, "")))
        self.assertTrue(checks.rights(self.broken('["A#keys"]', '["A#keys", "T#main"]')))

    def test_an_authorizer_that_could_make_keys(self):
        start = "Action: dynamodb:GetItem"
        right = start + '\n              Resource: !GetAtt Table.Arn\n              Condition: {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["A#keys"]}}\n'
        self.assertTrue(checks.rights(self.broken(right, right.replace(start, "Action: [dynamodb:GetItem, dynamodb:PutItem]"))))

    def test_a_function_that_reads_the_first_key(self):
        queue = "Resource: [!GetAtt WorkQueue.Arn, !GetAtt PushQueue.Arn, !GetAtt RelayFailures.Arn]"
        copy = self.broken(queue, queue + """
            - Effect: Allow
              Action: [secretsmanager:GetSecretValue]
              Resource: !Ref FirstKeySecret""")
        self.assertTrue(checks.authorizer(copy))
        self.assertTrue(checks.rights(copy))

    def test_a_decision_that_is_used_for_an_hour(self):
        self.assertTrue(checks.authorizer(self.broken("ReauthorizeEvery: !Ref ReauthorizeEvery", "ReauthorizeEvery: 3600")))

    def test_an_authorizer_that_must_be_supplied(self):
        old = "!If [OwnAuthorizer, !Ref AuthorizerFunctionArn, !GetAtt AuthorizerFunction.Arn]"
        self.assertTrue(checks.authorizer(self.broken(old, "!GetAtt AuthorizerFunction.Arn")))

    def test_a_right_too_many(self):
        copy = self.broken("[s3:GetObject]", "[s3:GetObject, s3:DeleteObject]")
        self.assertTrue(checks.rights(copy))

    def test_a_right_on_everything(self):
        copy = self.broken("Resource: !Sub ${Bucket.Arn}/v1/*", 'Resource: "*"')
        self.assertTrue(checks.rights(copy))

    def test_a_wildcard_action(self):
        copy = self.broken("Action: [s3:GetObject]", "Action: s3:*")
        self.assertTrue(checks.rights(copy))

    def test_a_managed_policy_with_broad_rights(self):
        copy = self.broken("      Policies:\n        - !Ref", "      Policies:\n        - AmazonS3FullAccess\n        - !Ref")
        self.assertTrue(checks.rights(copy))

    def test_dev_identities_in_a_deployed_function(self):
        self.assertTrue(checks.settings(self.broken("A2A_AUTH: gateway", "A2A_AUTH: dev")))

    def test_a_function_that_sam_build_skips(self):
        copy = self.broken("    Metadata: {BuildMethod: rust-cargolambda}\n", "")
        self.assertTrue(checks.settings(copy))
        self.assertTrue(checks.settings(self.broken("CodeUri: functions/rpc/", "CodeUri: target/lambda/rpc/")))

    def test_a_base_url_that_is_not_that_of_the_stage(self):
        line = "        publicUrl: !If [OwnUrl, !Ref PublicUrl,"
        self.assertTrue(checks.base_url(self.broken(line, line.replace("publicUrl", "url"))))
        self.assertTrue(checks.base_url(self.broken("OwnUrl: !Not [!Equals [!Ref PublicUrl", "OwnUrl: !Not [!Equals [!Ref Stage")))
        variable = "        A2A_AUTH: gateway\n"
        self.assertTrue(checks.settings(self.broken(variable, variable + "        A2A_PUBLIC_URL: !Ref PublicUrl\n")))

    def test_a_sweep_that_lambda_repeats(self):
        self.assertTrue(checks.retries(self.broken("EventInvokeConfig: {MaximumRetryAttempts: 0}", "EventInvokeConfig: {MaximumRetryAttempts: 2}")))
    def test_functions_that_ignore_the_parameter_for_tracing(self):
        self.assertTrue(checks.settings(self.broken("    Tracing: !Ref Tracing\n", "")))

    def test_a_runtime_that_does_not_exist(self):
        copy = self.broken("provided.al2023", "provided.al1999")
        self.assertTrue(checks.settings(copy))
        self.assertIn("provided.al1999", lint(copy.transformed))

    def test_a_queue_that_shows_a_message_while_its_worker_runs(self):
        self.assertTrue(checks.queues(self.broken("VisibilityTimeout: 900", "VisibilityTimeout: 60")))

    def test_a_queue_without_dead_letters(self):
        line = "      RedrivePolicy: {deadLetterTargetArn: !GetAtt WorkDeadLetters.Arn, maxReceiveCount: 100}\n"
        self.assertTrue(checks.queues(self.broken(line, "")))

    def test_a_queue_that_gives_up_after_three_receives(self):
        self.assertTrue(checks.queues(self.broken("maxReceiveCount: 100", "maxReceiveCount: 3")))

    def test_dead_letters_that_expire_too_early(self):
        self.assertTrue(checks.queues(self.broken("MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 345600")))

    def test_a_sweep_without_an_alarm(self):
        copy = self.broken_alarms('"${StackName}-sweep"', '"${StackName}-worker"')
        self.assertTrue(checks.schedules(copy))

    def test_dead_letters_without_an_alarm(self):
        copy = self.broken_alarms("Value: !Ref WorkDeadLetters", "Value: !Ref WorkQueue")
        self.assertTrue(checks.queues(copy))

    def test_relay_failures_without_an_alarm(self):
        copy = self.broken_alarms("Value: !Ref RelayFailures", "Value: !Ref WorkQueue")
        self.assertTrue(checks.queues(copy))

    def test_several_turns_in_one_invocation(self):
        self.assertTrue(checks.mappings(self.broken("BatchSize: 1\n", "BatchSize: 10\n")))

    def test_a_relay_that_misses_the_first_records(self):
        self.assertTrue(checks.mappings(self.broken("TRIM_HORIZON", "LATEST")))

    def test_a_failed_record_that_fails_its_whole_batch(self):
        line = "      FunctionResponseTypes: [ReportBatchItemFailures]\n"
        self.assertTrue(checks.mappings(self.broken(line, "")))
        self.assertTrue(checks.mappings(self.broken("      BisectBatchOnFunctionError: true\n", "")))

    def test_a_relay_that_gives_up_early_or_without_a_destination(self):
        self.assertTrue(checks.mappings(self.broken("MaximumRetryAttempts: -1", "MaximumRetryAttempts: 20")))
        self.assertTrue(checks.mappings(self.broken("MaximumRecordAgeInSeconds: 86400", "MaximumRecordAgeInSeconds: 3600")))
        destination = "OnFailure: {Destination: !GetAtt RelayFailures.Arn}"
        self.assertTrue(checks.mappings(self.broken(destination, "OnFailure: {Destination: !GetAtt WorkQueue.Arn}")))

    def test_a_relay_that_every_write_starts(self):
        self.assertTrue(checks.mappings(self.broken('"dispatch":{"N":[{"exists":true}]}', '"version":{"N":[{"exists":true}]}')))

    def test_a_fifo_queue_without_fairness(self):
        line = "      VisibilityTimeout: 90\n"
        self.assertTrue(checks.queues(self.broken(line, line + "      FifoQueue: true\n")))

    def test_a_relay_without_the_filter_for_events(self):
        line = """          - Pattern: '{"dynamodb":{"Keys":{"SK":{"S":["META"]}},"NewImage":{"notify":{"N":[{"exists":true}]}}}}'\n"""
        self.assertTrue(checks.mappings(self.broken(line, "")))

    def test_a_push_function_that_could_create_items(self):
        old = "Action: [dynamodb:GetItem, dynamodb:Query, dynamodb:UpdateItem]\n              Resource: !GetAtt Table.Arn"
        self.assertTrue(checks.rights(self.broken(old, old.replace("dynamodb:Query", "dynamodb:PutItem"))))

    def test_workers_without_a_concurrency_limit(self):
        line = "      ScalingConfig: {MaximumConcurrency: !Ref WorkerConcurrency}\n"
        self.assertTrue(checks.mappings(self.broken(line, "")))

    def test_a_reader_that_could_change_a_task(self):
        keys = '["T#*#R#limits", "S#streams#*"]'
        for more in ('["T#*", "S#streams#*"]', '["T#*#R", "S#streams#*"]'):
            self.assertTrue(checks.rights(self.broken(keys, more)))
        condition = f'              Condition:\n                ForAllValues:StringLike: {{"dynamodb:LeadingKeys": {keys}}}\n'
        self.assertTrue(checks.rights(self.broken(condition, "")))

    def test_a_sweep_without_a_schedule(self):
        line = "      Events:\n        Interval: {Type: Schedule, Properties: {Schedule: !Ref SweepInterval}}\n"
        self.assertTrue(checks.mappings(self.broken(line, "")))

    def test_a_turn_that_could_read_the_lists(self):
        begin = "            - Effect: Allow\n              Action: [sqs:ChangeMessageVisibility,"
        more = """            - Effect: Allow
              Action: [dynamodb:Query]
              Resource: !Sub ${Table.Arn}/index/GSI1
"""
        self.assertTrue(checks.rights(self.broken(begin, more + begin)))

    def test_a_relay_that_could_read_or_remove_anything(self):
        for right in ("dynamodb:Query", "dynamodb:GetItem", "s3:DeleteObject"):
            copy = self.broken("dynamodb:GetShardIterator]", f"dynamodb:GetShardIterator, {right}]")
            self.assertTrue(checks.rights(copy))

    def test_a_relay_without_an_age_alarm(self):
        self.assertTrue(checks.schedules(self.broken_alarms("MetricName: IteratorAge", "MetricName: Duration")))

    def test_a_sweep_that_cannot_send_a_turn_again(self):
        right = "Action: [sqs:GetQueueAttributes, sqs:SendMessage]"
        for less in ("sqs:GetQueueAttributes", "sqs:SendMessage"):
            self.assertTrue(checks.rights(self.broken(right, f"Action: [{less}]")))

    def test_a_sweep_that_can_list_uploads(self):
        lines = """              Action: [s3:ListBucket]
              Resource: !GetAtt Bucket.Arn
              Condition: {StringLike: {"s3:prefix": v1/*}}
            - Effect: Allow
              Action: [sqs:SendMessage]
"""
        wide = lines.replace("v1/*", "up/*")
        self.assertTrue(checks.rights(self.broken(lines, wide)))

    def test_a_turn_that_could_remove_an_object(self):
        right = "Action: [s3:AbortMultipartUpload, s3:GetObject, s3:PutObject]"
        self.assertTrue(checks.rights(self.broken(right, right.replace("s3:GetObject", "s3:DeleteObject, s3:GetObject"))))

    def test_a_send_that_can_list_every_object(self):
        line = '              Condition: {StringLike: {"s3:prefix": v1/*}}\n'
        self.assertTrue(checks.rights(self.broken(line, "")))

    def test_a_function_that_could_write_to_every_log_group(self):
        self.assertTrue(checks.rights(self.broken("        - !Ref LimitsOfFunctions\n", "")))
        self.assertTrue(checks.limits(self.broken("NotResource: !GetAtt LogsOfReference.Arn", 'NotResource: "*"')))
        self.assertTrue(checks.limits(self.broken('          - {Effect: Deny, Action: ["logs:CreateLogGroup"], Resource: "*"}\n', "")))

    def test_a_webhook_function_in_a_vpc(self):
        line = "      RecursiveLoop: Allow\n"
        vpc = "      VpcConfig: !If [HasVpc, {SubnetIds: !Split [\",\", !Ref VpcSubnetIds], SecurityGroupIds: !Split [\",\", !Ref VpcSecurityGroupIds]}, !Ref AWS::NoValue]\n"
        self.assertTrue(checks.places(self.broken(line, line + vpc)))
        self.assertTrue(checks.places(self.broken("      MemorySize: !Ref MemorySize\n", "")))

    def test_a_bucket_without_the_key_of_the_operator(self):
        self.assertTrue(checks.keys(self.broken(", KMSMasterKeyID: !Ref KmsKeyArn}, {", "}, {")))

    def test_a_secret_where_none_is_needed(self):
        variable = "          A2A_WORK_QUEUE_URL: !Ref WorkQueue\n"
        self.assertTrue(checks.settings(self.broken(variable, variable + "          A2A_SECRET_KEY_ID: none\n")))
        self.assertTrue(checks.settings(self.broken(variable, variable + "          A2A_SECRET_KEY: none\n")))

    def test_a_table_that_is_deleted_with_the_stack(self):
        copy = self.broken("    DeletionPolicy: RetainExceptOnCreate\n", "")
        self.assertTrue(checks.state(copy))

    def test_a_table_that_stops_the_rollback_of_its_first_deployment(self):
        line = "      BillingMode: PAY_PER_REQUEST\n"
        self.assertTrue(checks.state(self.broken(line, line + "      DeletionProtectionEnabled: true\n")))

    def test_a_stream_without_new_images(self):
        self.assertTrue(checks.state(self.broken("StreamViewType: NEW_IMAGE", "StreamViewType: KEYS_ONLY")))

    def test_objects_of_tasks_that_expire_by_age(self):
        copy = self.broken("            Prefix: up/\n            ExpirationInDays", "            Prefix: v1/\n            ExpirationInDays")
        self.assertTrue(checks.state(copy))

    def test_a_bucket_that_loses_objects_of_a_restored_table(self):
        copy = self.broken("VersioningConfiguration: {Status: Enabled}", "VersioningConfiguration: {Status: Suspended}")
        self.assertTrue(checks.state(copy))
        self.assertTrue(checks.state(self.broken("NoncurrentDays: 36", "NoncurrentDays: 30")))


if __name__ == "__main__":
    unittest.main()
