"""A second deployment: what a changed parameter means to callers. The programs stay the same."""

import json

from deploy import Deployment, Failed
from world import BASE, DOMAIN, World, Wrong, check


def case_changed_settings_are_those_of_each_function(world):
    """Of the authorizer, of functions that API Gateway starts, and of one that a queue starts."""
    settings = {"A2A_RATE_LIMIT": 3, "A2A_FIRST_KEY_TENANT": "other"}
    with world.changed(Settings=json.dumps(settings), LogLevel="debug"):
        status, answer = world.owner().call("GET", "/other/tasks")
        check(status == 200, "the first key has the new tenant", status, answer)
        ann = world.caller()
        ann.send("echo later", immediately=True)
        codes = [ann.call("GET", "/tasks")[0] for _ in range(8)]
        check(codes[0] == 200 and 429 in codes, "the new rate counts", codes)
        world.wait("the end", lambda: world.items(ann.tenant, state="completed"))
        check(world.running("worker", "A2A_LOG") == {"info,a2a_lambda=debug"}, "the worker has the new level")


def case_a_changed_address_is_on_the_card_and_closes_the_other(world):
    """A variable of the stage, the way in, and the origin of pages, which preflights name."""
    url, origin = f"https://{DOMAIN}{BASE}", "https://other.example.com"
    with world.changed(PublicUrl=url, CorsOrigin=origin):
        check(url in str(world.stranger().ok("GET", "/agent.json")), "the card names it")
        for method, path in (("OPTIONS", "/tasks"), ("GET", "/health")):
            response = world.stranger().open(method, path, headers={"Origin": origin})
            response.read()
            check(response.headers["Access-Control-Allow-Origin"] == origin, "API Gateway and the functions name it", path)
        with world.changed(DisableExecuteApi="on"):
            status, answer = world.stranger().call("GET", "/agent.json")
            check(status == 403, "the address of API Gateway is closed", status, answer)
            status, answer = world.stranger().call("GET", "/agent.json", host=DOMAIN)
            check(status == 200 and url in str(answer), "the domain answers", status, answer)


def case_a_removed_first_key_is_refused(world):
    """A condition: its secret goes."""
    with world.changed(FirstKey="off"):
        status, answer = world.owner().call("GET", "/tasks")
        check(status == 401, "it is refused", status, answer)
    check(world.owner().call("GET", "/tasks")[0] == 200, "a new one is made")


def _refused(world, settings):
    """Why a deployment with these settings fails. It changes no function but `ops`."""
    before, ops = _revisions(world), world.variables("ops")
    try:
        world.deploy(Settings=settings)
    except Failed as failed:
        changed = {name for name, it in _revisions(world).items() if it != before[name]}
        check(changed <= {world.deployment.functions["ops"]}, "no other function has changed", settings, sorted(changed))
        check(world.variables("ops") == ops, "and ops is as before", settings)
        check(world.owner().send("echo hello")["id"], "the agent answers")
        return str(failed)
    raise Wrong(f"{settings} is deployed")


def case_settings_that_the_program_refuses_fail_their_deployment(world):
    for settings, reason in (
        ('{"A2A_TASK_TLT": "7d"}', "A2A_TASK_TLT"),
        ('{"A2A_STATE_TTL": "2d", "A2A_THREAD_TTL": "1d"}', "at most `A2A_THREAD_TTL`"),
        ('{"A2A_JWT_ISSUER": "https://issuer.example.com"}', "A2A_JWT_AUDIENCE"),
        ('{"A2A_SECRET_KEY": "0123456789abcdef0123456789abcdef"}', "a secret"),
        ('{"A2A_TABLE": "other"}', "what the template sets"),
        ("{}}", "trailing characters"),
    ):
        why = _refused(world, settings)
        check(reason in why and "0123456789abcdef" not in why, "the reason is named", settings, why)


def case_an_upgrade_that_refuses_the_settings_fails_its_deployment(world):
    """`Settings` is as before, and the custom resource asks because of the release."""
    before = _revisions(world)
    try:
        world.deployment.next_release('A2A_LEASE: "0s"')
    except Failed as failed:
        check("A2A_LEASE" in str(failed), "the reason is named", str(failed))
    else:
        raise Wrong("a release that refuses its settings is deployed")
    changed = {name for name, it in _revisions(world).items() if it != before[name]}
    check(changed <= {world.deployment.functions["ops"]}, "no other function has changed", sorted(changed))
    check(world.owner().send("echo hello")["id"], "the agent answers")


def case_a_table_of_another_stored_form_fails_its_deployment(world):
    """The program before the deployment cannot read the table either, so the rollback waits for the operator."""
    key = {"PK": {"S": "F#form"}, "SK": {"S": "FORM"}}
    item = world.dynamodb.get_item(TableName=world.table, Key=key)["Item"]
    world.dynamodb.put_item(TableName=world.table, Item=item | {"schema": {"N": "1"}})
    try:
        why = _refused(world, '{"A2A_LEASE": "7s"}')
    finally:
        world.dynamodb.put_item(TableName=world.table, Item=item)
    world.deployment.continue_rollback()
    check("use a release that reads 1" in why, "the reason says what to do", why)


def case_a_program_runs_with_the_settings_of_another_release(world):
    """Lambda changes variables before code, and back: for seconds the program of the other release sees them."""
    name, lambdas, before = world.deployment.functions["tasks-get"], world.deployment.lambdas, world.variables("tasks-get")
    later = {"A2A_SETTINGS": '{"A2A_SETTING_OF_THE_NEXT_RELEASE": "x", "A2A_LEASE": "6s"}', "A2A_TURNS_PER_TENANT": "100"}
    try:
        lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": before | later})
        world.functions.refresh()
        check(world.caller().call("GET", "/tasks")[0] == 200, "it answers")
        log = (world.emulator.folder / f"{name}.log").read_text()
        check("A2A_SETTING_OF_THE_NEXT_RELEASE" in log and "A2A_TURNS_PER_TENANT" in log, "and reports each setting")
    finally:
        lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": before})
        world.functions.refresh()


def _revisions(world):
    """What changes with each change of a function."""
    get = world.deployment.lambdas.get_function_configuration
    return {name: get(FunctionName=name)["RevisionId"] for name in world.deployment.functions.values()}


def case_another_agent_does_not_replace_this_one(world):
    """Its template, deployed over this stack, changes no function."""
    before = _revisions(world)
    try:
        world.deployment.another("Other")
    except Failed as failed:
        check("/a2a-lambda/stack" in str(failed), "the log group says why", str(failed))
    else:
        raise Wrong("another agent is deployed over this one")
    check(_revisions(world) == before, "no function has changed", before)
    check(world.owner().send("echo hello")["id"], "the agent answers")


def case_a_first_deployment_that_fails_and_a_deleted_stack_can_be_deployed_again(world):
    """Of prod. The table is protected as docs/guide/ship.md says, and outlives the stack."""
    prod = Deployment(world.emulator, world.packages, name="prod")
    try:
        prod.create(Stage="prod", Settings='{"A2A_TASK_TLT": "7d"}')
    except Failed as failed:
        check("ROLLBACK_COMPLETE" in str(failed), "it goes back", str(failed))
    else:
        raise Wrong("refused settings are deployed")
    tables = world.dynamodb.list_tables()["TableNames"]
    check(not [it for it in tables if it.startswith("prod-Table")], "no table is left", tables)
    prod.delete()
    prod.create(Stage="prod")
    table = prod.outputs["TableName"]
    world.dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
    prod.delete()
    check(table in world.dynamodb.list_tables()["TableNames"], "it is kept", table)
    prod.create(Stage="prod")
    check(prod.outputs["ApiUrl"], "the agent is deployed again")


def case_a_second_agent_is_deployed_beside_the_first(world):
    second = World(world.emulator, world.packages, world.binaries, world.patience, stack="second")
    try:
        task = second.owner().send("echo second")["id"]
        check(world.owner().call("GET", f"/tasks/{task}")[0] in (401, 404), "the first has no task of it")
        shared = set(second.deployment.physical.values()) & set(world.deployment.physical.values())
        # The id of a deployment or a stage is one within its API.
        same = {second.deployment.physical[name] for name, it in second.deployment.template["Resources"].items()
                if it["Type"].startswith(("AWS::ApiGateway::", "Custom::")) and name in second.deployment.physical}
        check(shared <= same, "they share no resource", sorted(shared))
    finally:
        second.stop()
