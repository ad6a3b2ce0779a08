"""Who may call: keys of the stack and of the table, kept results of the authorizer, tenants."""

from world import DOMAIN, V1, check, message


def error(answer):
    """Status and reason of the protocol's error."""
    return answer["error"]["status"], answer["error"]["details"][0]["reason"]



def case_a_key_of_the_table_names_its_tenant(world):
    ann, bob = world.caller(), world.caller()
    task = ann.send("echo mine")["id"]
    check(ann.call("GET", f"/tasks/{task}")[0] == 200, "its owner reads a task")
    for path in (f"/tasks/{task}", f"/{ann.tenant}/tasks/{task}", f"/v1/tasks/{task}"):
        status, answer = bob.call("GET", path)
        check(status in (403, 404) and "echo" not in str(answer), "another tenant does not", path, status, answer)


def case_no_key_and_a_wrong_key_are_refused_in_the_form_of_the_protocol(world):
    first = world.first_key
    wrong = [None, first[:-1], first + "x", "a2a_none_" + "x" * 43, "eyJhbGciOiJub25lIn0.e30."]
    for key in wrong:
        response = world.stranger(key).open("GET", "/tasks")
        text = response.read().decode()
        check(response.status == 401 and '"UNAUTHENTICATED"' in text, "a wrong key is refused", key, response.status, text)
        check(response.headers["WWW-Authenticate"] == "Bearer", "and the scheme is named", dict(response.headers))


def case_a_kept_result_of_the_authorizer_counts_for_every_path(world):
    ann = world.caller()
    world.gateway.forget()
    ann.ok("GET", "/tasks")
    asked = world.gateway.asked
    task = ann.send("echo hello")["id"]
    ann.ok("GET", f"/tasks/{task}")
    ann.rpc("GetTask", {"id": task})
    list(ann.frames("POST", "/message:stream", {"message": message("echo again")}))
    check(world.gateway.asked == asked, "the authorizer is not asked again", asked, world.gateway.asked)


def case_a_withdrawn_key_ends_with_its_kept_result(world):
    ann = world.caller()
    ann.ok("GET", "/tasks")
    world.operator("keys", "withdraw", ann.key.split("_")[1])
    check(ann.call("GET", "/tasks")[0] == 200, "a kept result is used to its end")
    world.gateway.forget()
    check(ann.call("GET", "/tasks")[0] == 401, "then the key is refused")


def case_responses_of_the_gateway_itself_have_the_form_of_the_protocol(world):
    owner = world.owner()
    for method, path, status, reason in (
        ("GET", "/nowhere", 404, "METHOD_NOT_FOUND"),
        ("PUT", "/tasks", 404, "METHOD_NOT_FOUND"),
    ):
        found, answer = owner.call(method, path)
        check(found == status and error(answer)[1] == reason, f"{method} {path}", found, answer)
    found, answer = owner.call("POST", "/message:send", raw=b"x" * (10 * 1024 * 1024 + 1))
    check(found == 413 and error(answer)[1] == "PAYLOAD_TOO_LARGE", "a body above 10 MB", found, answer)


def case_the_card_names_the_address_of_the_stage_and_not_that_of_a_header(world):
    for host in (None, "evil.example", "169.254.169.254"):
        stranger = world.stranger()
        for path in ("/.well-known/agent-card.json", "/.well-known/agent.json", "/agent.json"):
            status, card = stranger.call("GET", path, headers={"X-Forwarded-Host": "evil.example"} | ({"Host": host} if host else {}))
            check(status == 200 and "evil" not in str(card) and world.url in str(card), "the card", host, path, card)


def case_a_domain_with_a_base_path_serves_the_same_tasks(world):
    ann = world.caller()
    status, sent = ann.call("POST", "/message:send", {"message": message("echo here")}, host=DOMAIN)
    check(status == 200, "a send over the domain", status, sent)
    task = sent["task"]["id"]
    for path in (f"/tasks/{task}", f"/v1/tasks/{task}"):
        status, found = ann.call("GET", path, host=DOMAIN)
        check(status == 200 and found["id"] == task, "its task is read there", path, status, found)
    status, found = ann.call("POST", f"/tasks/{task}:cancel", {}, host=DOMAIN)
    check(status in (400, 409), "a verb is split off there too", status, found)
    check(ann.call("GET", f"/tasks/{task}")[0] == 200, "and without the domain")



def case_a_caller_above_its_rate_is_refused_with_the_time_to_wait(world):
    """Reads alone, so `tasks-get` counts them. The rate of a deployment is 100 calls a minute."""
    ann = world.caller()
    for _ in range(250):
        response = ann.open("GET", "/tasks")
        text = response.read().decode()
        if response.status != 200:
            break
    check(response.status == 429 and "RATE_LIMITED" in text, "the burst ends", response.status, text)
    check(int(response.headers["Retry-After"]) >= 1, "with a time", dict(response.headers))
    check(world.caller().call("GET", "/tasks")[0] == 200, "others are served")


def case_the_first_key_serves_a_conformance_kit(world):
    """More calls than the rate of other callers."""
    codes = {world.owner().call("GET", "/tasks")[0] for _ in range(200)}
    check(codes == {200}, "no call is refused", sorted(codes))


def case_headers_of_a_client_keep_their_case_and_name_no_caller(world):
    ann = world.caller()
    status, _ = ann.call("GET", "/tasks", headers={"authorization": f"Bearer {ann.key}", "Authorization": None})
    check(status == 200, "a header in small letters", status)
    forged = {"X-Tenant": "other", "x-amzn-tenant": "other", "A2A-Tenant": "other"}
    task = ann.send("echo mine")["id"]
    check(ann.call("GET", f"/tasks/{task}", headers=V1 | forged)[0] == 200, "made-up headers change nothing")
