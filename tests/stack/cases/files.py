"""Files: uploads, large artifacts, deletion."""

import base64
import hashlib
import urllib.request

from world import check, message

SIZE = 300_000


def _uploaded(ann, content):
    """Orders an upload and sends the file to the URL of its grant."""
    order = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "filename": "a.bin",
             "mediaType": "application/octet-stream"}
    grant = ann.ok("POST", "/a2a-lambda/uploads", order)
    put = urllib.request.Request(grant["url"], data=content, method="PUT", headers=grant["headers"])
    with urllib.request.urlopen(put) as done:
        check(done.status == 200, "the bucket accepts the file", done.status)
    return grant["part"]


def _bytes(part):
    """The content of a file part, from the response or from the URL in it."""
    if "raw" in part:
        return base64.b64decode(part["raw"])
    with urllib.request.urlopen(part["url"]) as answer:
        return answer.read()


def case_an_upload_is_sent_and_deleted_with_its_task(world):
    """Over each function that accepts messages."""
    ann = world.caller()
    content = bytes(range(256)) * (SIZE // 256)
    for path in ("/message:send", "/", "/message:stream"):
        ask = {"message": message("", parts=[{"text": "back"}, _uploaded(ann, content)])}
        if path == "/":
            task = ann.rpc("SendMessage", ask)["task"]
        elif path == "/message:send":
            task = ann.ok("POST", path, ask)["task"]
        else:
            frames = [frame for _, frame in ann.frames("POST", path, ask)]
            task = ann.until(frames[0]["task"]["id"])
        check(_bytes(task["artifacts"][0]["parts"][0]) == content, f"{path} gives the file back")
        read = ann.ok("GET", f"/tasks/{task['id']}")
        check(_bytes(read["artifacts"][0]["parts"][0]) == content, "tasks-get too")
        check(ann.call("DELETE", f"/a2a-lambda/tasks/{task['id']}")[0] in (200, 204), "its task is deleted")
        check(ann.call("GET", f"/tasks/{task['id']}")[0] == 404, "and gone")
        left = [key for key in world.objects("v1/") if task["id"] in key]
        check(not left, "with its objects", left)


def case_an_upload_is_no_use_to_another_tenant(world):
    ann, bob = world.caller(), world.caller()
    part = _uploaded(ann, b"0123456789")
    status, answer = bob.call("POST", "/message:send", {"message": message("", parts=[{"text": "back"}, part])})
    check(status == 400, "it is refused", status, answer)


def case_a_large_artifact_is_stored_by_each_function(world):
    ann = world.caller()
    for text in (f"file {SIZE}", "file 9000000"):
        for send in (
            lambda: ann.send(text),
            lambda: ann.rpc("SendMessage", {"message": message(text)})["task"],
            lambda: ann.until([frame for _, frame in ann.frames("POST", "/message:stream", {"message": message(text)})][0]["task"]["id"]),
            lambda: ann.until(ann.send(text, immediately=True)["id"]),
        ):
            task = ann.ok("GET", f"/tasks/{send()['id']}")
            found = _bytes(task["artifacts"][0]["parts"][0])
            check(len(found) == int(text.split()[1]) and found[:3] == bytes(range(3)), text, len(found))


def case_a_task_refers_to_another(world):
    ann = world.caller()
    first = ann.send(f"file {SIZE}")
    for path in ("/message:send", "/message:stream", "/"):
        said = message("refer", referenceTaskIds=[first["id"]])
        if path == "/":
            task = ann.rpc("SendMessage", {"message": said})["task"]
        elif path == "/message:send":
            task = ann.ok("POST", path, {"message": said})["task"]
        else:
            task = ann.until([frame for _, frame in ann.frames("POST", path, {"message": said})][0]["task"]["id"])
        shown = task["artifacts"][0]["parts"][0]["data"]["shown"]
        check([it[0] for it in shown] == [first["id"]], "the skill sees it", task)


def case_a_context_is_deleted_with_its_tasks(world):
    ann = world.caller()
    first = ann.send("note it")
    ann.send(f"file {SIZE}", contextId=first["contextId"])
    listed = [it["contextId"] for it in ann.ok("GET", "/a2a-lambda/contexts")["contexts"]]
    check(first["contextId"] in listed, "it is listed", listed)
    check(ann.call("DELETE", f"/a2a-lambda/contexts/{first['contextId']}")[0] in (200, 202, 204), "it is deleted")
    check(ann.call("GET", f"/tasks/{first['id']}")[0] == 404, "with its tasks")
