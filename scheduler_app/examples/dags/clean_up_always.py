"""Setup and teardown: a folder is made before the work, and removed after it, whether the work succeeds or not.

The run's state is that of the work: a teardown that fails does not turn it red. Trigger it with ``fail`` on to see the
folder go although ``crunch`` failed.
"""

import shutil
import tempfile
from pathlib import Path

import pendulum
from airflow.sdk import Param, dag, setup, task, teardown


@dag(
    dag_id="clean_up_always",
    description="A temporary folder around two tasks",
    doc_md=__doc__,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    params={"fail": Param(False, type="boolean", description="Let the work fail")},
    default_args={"owner": "examples"},
    tags=["example", "taskflow", "setup"],
)
def clean_up_always():
    @setup
    def make_folder() -> str:
        return tempfile.mkdtemp(prefix="clean_up_always.")

    @task
    def download(folder: str) -> int:
        return (Path(folder) / "numbers.txt").write_text("\n".join(map(str, range(100))))

    @task
    def crunch(folder: str, params: dict) -> int:
        if params["fail"]:
            raise ValueError("This run was asked to fail.")
        return sum(map(int, (Path(folder) / "numbers.txt").read_text().split()))

    @teardown
    def remove_folder(folder: str) -> None:
        shutil.rmtree(folder)

    folder = make_folder()
    cleaned = remove_folder(folder)
    folder >> download(folder) >> crunch(folder) >> cleaned


clean_up_always()
