"""A module beside the DAG file: whoever runs a task or a trigger of it needs the folder, not the file alone."""

import asyncio

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent
from ledgerbook import note


class Nap(BaseTrigger):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def serialize(self):
        return "pauses.Nap", {"seconds": self.seconds}

    async def run(self):
        await asyncio.sleep(self.seconds)
        yield TriggerEvent("slept")


class Pause(BaseOperator):
    """Gives its slot back while a triggerer waits for it."""

    def __init__(self, seconds, **kwargs):
        super().__init__(**kwargs)
        self.seconds = seconds

    def execute(self, context):
        note("begin", context["ti"])
        self.defer(trigger=Nap(self.seconds), method_name="go_on")

    def go_on(self, context, event):
        note("resume", context["ti"])
        assert event == "slept"
        note("end", context["ti"])
