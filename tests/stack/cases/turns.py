"""Turns: in a call, as a stream, behind a call."""

import json
import os

from world import check, message, state


def said(task):
    return "".join(part.get("text", "") for it in task.get("artifacts", []) for part in it["parts"])


def case_a_question_is_answered_in_its_task(world):
    ann = world.caller()
    asked = ann.send("hm")
    check(state(asked) == "TASK_STATE_INPUT_REQUIRED", "the skill asks", asked)
    ended = ann.send("echo this", taskId=asked["id"], contextId=asked["contextId"])
    check(ended["id"] == asked["id"] and said(ended) == "echo: this", "the answer ends the task", ended)


def case_tasks_are_listed_and_canceled(world):
    ann = world.caller()
    first, second = ann.send("hm"), ann.send("hm")
    for page in (ann.ok("GET", "/tasks"), ann.rpc("ListTasks", {})):
        listed = [task["id"] for task in page["tasks"]]
        check(listed == [second["id"], first["id"]], "newest first", listed)
    ended = ann.ok("POST", f"/tasks/{first['id']}:cancel", {})
    check(state(ended) == "TASK_STATE_CANCELED", "a path cancels", ended)
    ended = ann.rpc("CancelTask", {"id": second["id"]})
    check(state(ended) == "TASK_STATE_CANCELED", "so does JSON-RPC", ended)


def case_a_context_keeps_what_was_said(world):
    """Over each function that runs turns."""
    ann = world.caller()
    for send in (
        lambda it: ann.ok("POST", "/message:send", {"message": it})["task"],
        lambda it: ann.rpc("SendMessage", {"message": it})["task"],
        lambda it: _streamed(ann, it),
        lambda it: _behind(ann, it),
    ):
        # Larger than what the table holds of a message, so the rest is in the bucket: nothing shrinks it.
        words = os.urandom(60_000).hex()
        first = send(message("note more"))
        send(message(f"note {words}", contextId=first["contextId"]))
        recalled = send(message("recall", contextId=first["contextId"]))
        data = recalled["artifacts"][0]["parts"][0]["data"]
        check(data["noted"].strip() == words.strip(), "the skill recalls its value", str(recalled)[:500])
        said = {"note more", f"note {words}"} <= set(data["said"])
        check(said, "and the messages of both tasks", str(recalled)[:500])


def _streamed(ann, said):
    frames = [frame for _, frame in ann.frames("POST", "/message:stream", {"message": said})]
    return ann.until(frames[0]["task"]["id"])


def _behind(ann, said):
    return ann.until(ann.ok("POST", "/message:send", {"message": said, "configuration": {"returnImmediately": True}})["task"]["id"])


def case_a_stream_shows_events_while_the_skill_runs(world):
    """A frame is read before the task is canceled, so it did not wait for the end of the response."""
    ann = world.caller()
    for path in ("/message:stream", "/"):
        config = {"url": "https://hooks.example.com/a2a", "token": "t"}
        ask = {"message": message("wait 600"), "configuration": {"taskPushNotificationConfig": config}}
        body = ask if path != "/" else {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": ask}
        frames = (frame.get("result", frame) for _, frame in ann.frames("POST", path, body))
        first = next(frames)
        task = first["task"]["id"]
        while state(first) != "TASK_STATE_WORKING":
            first = next(frames)
        ann.ok("POST", f"/tasks/{task}:cancel", {})
        last = list(frames)[-1]
        check(state(last) == "TASK_STATE_CANCELED", f"{path} ends with the cancel", last)


def case_a_subscriber_resumes_after_the_last_event_it_saw(world):
    ann = world.caller()
    frames = ann.frames("POST", "/message:stream", {"message": message("steps 4 300")})
    seen = [next(frames) for _ in range(3)]
    task = seen[0][1]["task"]["id"]
    last = [at for at, _ in seen if at][-1]
    rest = list(ann.frames("GET", f"/tasks/{task}:subscribe", headers={"Last-Event-ID": last}))
    check(rest[0][0] is None, "it begins with the status", rest[0])
    whole = [at for at, _ in seen] + [at for at, _ in frames]
    resumed = [at for at, _ in rest[1:]]
    check(resumed == whole[whole.index(last) + 1:], "and shows each later event once", whole, resumed)


def case_a_subscriber_of_an_open_task_sees_its_end(world):
    ann = world.caller()
    for method in ("GET", "POST"):
        task = ann.send("hm")["id"]
        frames = ann.frames(method, f"/tasks/{task}:subscribe")
        next(frames)
        ann.rpc("CancelTask", {"id": task})
        check(state(list(frames)[-1][1]) == "TASK_STATE_CANCELED", f"{method} :subscribe")



def case_a_panicking_skill_fails_its_task_and_its_process_lives(world):
    """In each function that runs a skill. The next call is served by the same process."""
    ann = world.caller()
    for send in (
        lambda: ann.send("panic"),
        lambda: ann.rpc("SendMessage", {"message": message("panic")})["task"],
        lambda: _streamed(ann, message("panic")),
        lambda: _behind(ann, message("panic")),
    ):
        ended = send()
        check(state(ended) == "TASK_STATE_FAILED", "the task fails", ended)
        check("panicked as" not in str(ended), "without the text of the panic", ended)
    running = {pid for name in ("tasks-send", "worker") for pid in world.emulator.processes(world.deployment.functions[name])}
    check(said(ann.send("echo alive")) == "echo: alive", "tasks-send lives")
    check(said(_behind(ann, message("echo alive"))) == "echo: alive", "worker lives")
    after = {pid for name in ("tasks-send", "worker") for pid in world.emulator.processes(world.deployment.functions[name])}
    check(running <= after, "no process ended", sorted(running), sorted(after))



def case_a_text_of_300_kb_comes_back_whole(world):
    ann = world.caller()
    text = "word " * 60_000
    for send in (lambda: ann.send("echo " + text), lambda: _streamed(ann, message("echo " + text))):
        ended = send()
        check(said(ended).strip() == ("echo: " + text).strip(), "the text", len(said(ended)))
        read = ann.ok("GET", f"/tasks/{ended['id']}")
        check(said(read) == said(ended), "also when it is read")


def case_a_task_waits_for_credentials_and_continues(world):
    ann = world.caller()
    asked = ann.send("auth")
    check(state(asked) == "TASK_STATE_AUTH_REQUIRED", "the skill asks", asked)
    ask = {"message": message("echo secret", taskId=asked["id"]), "configuration": {"returnImmediately": True}}
    ann.ok("POST", "/message:send", ask)
    check(said(ann.until(asked["id"])) == "echo: secret", "the worker opens the sealed answer")


def case_a_client_that_goes_away_ends_no_turn(world):
    ann = world.caller()
    response = ann.open("POST", "/message:stream", {"message": message("steps 3 300")})
    while not (line := response.readline()).startswith(b"data:"):
        pass
    task = json.loads(line[5:])["task"]["id"]
    response.close()
    check(state(ann.until(task)) == "TASK_STATE_COMPLETED", "its task ends")
