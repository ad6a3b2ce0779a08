"""The agent that ACTS starts: its tokens, and its two special modes."""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
SEND = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "tck-complete-task x"}]}}
VALID, INSUFFICIENT = "itk-valid-token", "itk-insufficient-token"
LIMIT = 60


def free_port():
    import socket
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Agent:
    def __init__(self, **modes):
        self.base = f"http://127.0.0.1:{free_port()}"
        command = [sys.executable, str(HERE / "acts_agent.py"), "--httpPort", self.base.rsplit(":", 1)[1], "--grpcPort", "1"]
        self.process = subprocess.Popen(command, env=os.environ | modes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        end = time.monotonic() + LIMIT
        while True:
            try:
                self.card = self.get("/.well-known/agent-card.json")
                return self
            except urllib.error.URLError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.base + path, timeout=LIMIT) as response:
            return json.load(response)

    def status(self, token, method="message:send"):
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(f"{self.base}/{method}", json.dumps(SEND).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as response:
                response.read()
                return response.status
        except urllib.error.HTTPError as error:
            with error:
                return error.status


class Modes(unittest.TestCase):
    def test_the_runner_is_served_with_its_token_and_without_one(self):
        with Agent() as agent:
            self.assertEqual([agent.status(token) for token in (None, VALID, INSUFFICIENT)], [200, 200, 401])
            self.assertEqual(agent.card["supportedInterfaces"][0]["url"], agent.base)

    def test_with_authentication_a_token_is_needed_and_has_to_be_sufficient(self):
        with Agent(ITK_ACTS_AUTH="1") as agent:
            self.assertEqual([agent.status(token) for token in (None, VALID, INSUFFICIENT)], [401, 200, 403])
            self.assertTrue(agent.card["securitySchemes"] and agent.card["securityRequirements"])

    def test_with_reduced_capabilities_the_card_and_the_agent_offer_less(self):
        with Agent(ITK_ACTS_REDUCED_CAPABILITIES="1") as agent:
            offered = agent.card["capabilities"]
            self.assertFalse(offered["streaming"] or offered["pushNotifications"] or offered["extendedAgentCard"])
            self.assertEqual(agent.status(None, "message:stream"), 400)
            self.assertEqual(agent.status(None), 200)


if __name__ == "__main__":
    unittest.main()
