"""An agent of a Python framework with a server and a card of its own, for `a2a-local check`.

a2a-lite writes skills without tags and answers with messages. Pydantic AI on fasta2a writes a card
without skills.
"""

import argparse
import socket

import uvicorn


def a2a_lite(url):
    from a2a_lite import Agent

    agent = Agent(name="Lite", description="Repeats words.", url=url)

    @agent.skill("repeat", description="Repeats words.")
    async def repeat(message: str) -> str:
        return message

    return agent.get_app()


def pydantic_ai(url):
    from fasta2a.pydantic_ai import agent_to_a2a
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    return agent_to_a2a(Agent(TestModel()), name="Pydantic", url=url)


def main():
    frameworks = {"a2a-lite": a2a_lite, "pydantic-ai": pydantic_ai}
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("framework", choices=frameworks)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    application = frameworks[arguments.parse_args().framework](url)
    print(f"listening on {url}", flush=True)
    uvicorn.Server(uvicorn.Config(application, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
