"""Walks the copied agent that has gained memory by one line: a memory, its health, its metrics."""

import argparse
import json
import urllib.request

HEADERS = {"A2A-Version": "1.0", "Content-Type": "application/json"}


def get(url):
    with urllib.request.urlopen(url) as response:
        return response.read().decode()


def send(base, text):
    message = {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}
    body = json.dumps({"message": message}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{base}/message:send", body, HEADERS)) as response:
        return json.load(response)["task"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("base", help="the address of the agent")
    base = arguments.parse_args().base
    card = json.loads(get(f"{base}/.well-known/agent-card.json"))
    assert {"price", "book", "memory_add", "memory_search"} <= {skill["id"] for skill in card["skills"]}, card
    added = send(base, '/memory_add {"content": "Table 4 likes tea", "layer": "user"}')
    assert added["artifacts"][0]["parts"][0]["data"]["layer"] == "user", added
    found = send(base, "What do you remember about tea")
    results = found["artifacts"][0]["parts"][0]["data"]["results"]
    assert [memory["content"] for memory in results] == ["Table 4 likes tea"], found
    health = json.loads(get(f"{base}/a2a-lambda/health"))
    assert health["dependencies"]["memory"]["status"] == "ok", health
    assert 'skill_name="memory_add"' in get(f"{base}/metrics"), "the metrics have no memory"
    print("one line added memory: its skills, its health and its metrics")


if __name__ == "__main__":
    main()
