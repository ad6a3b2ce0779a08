"""CrewAI, PyPI `crewai[a2a]`: the delegation of a task, as an agent with an A2A client delegates
one. No model is asked: the crew's own agent would only choose the words."""

from crewai.a2a.config import A2AClientConfig
from crewai.a2a.updates import PollingConfig
from crewai.a2a.utils.delegation import aexecute_a2a_delegation
from crewai_files import ImageFile

from acts import CALL_LIMIT, Client, Reply, main


class Framework(Client):
    package = "crewai"
    shows_files = shows_data = False
    refers = True

    async def open(self, base):
        self.config = A2AClientConfig(endpoint=f"{base}/.well-known/agent-card.json")

    async def ask(self, text, last=None, task=None, **options) -> Reply:
        task, context, references = last.handle if last else (task, None, [])
        result = await aexecute_a2a_delegation(
            endpoint=self.config.endpoint,
            auth=None,
            timeout=CALL_LIMIT,
            task_description=text,
            task_id=task,
            context_id=context,
            reference_task_ids=references,
            accepted_output_modes=self.config.accepted_output_modes,
            **options,
        )
        named = next((one for one in reversed(result["history"]) if one.task_id), None)
        task, context = (named.task_id, named.context_id) if named else (None, context)
        # As its agent does between two delegations: a completed task becomes a reference.
        is_over = result["status"].value == "completed"
        return Reply(
            text=result.get("result") or result.get("error") or "",
            state=result["status"].value,
            task=task or "",
            handle=(None, context, [*references, task]) if is_over else (task, context, references),
        )

    async def send(self, text, last=None):
        # Polling: a send, then a get of the task until it rests.
        return await self.ask(text, last, updates=PollingConfig())

    async def stream(self, text, last=None):
        return await self.ask(text, last)

    async def file(self, text, name, content):
        return await self.ask(text, input_files={name: ImageFile(source=content)})

    async def stream_to(self, task, text):
        return await self.ask(text, task=task)


if __name__ == "__main__":
    main(Framework())
