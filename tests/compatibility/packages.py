"""The example files of the two packages, from the package index into a folder."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: requirement → where its examples lie in the wheel
PACKAGES = {
    "apache-airflow-core==3.3.2": "airflow/example_dags/",
    "apache-airflow-providers-standard==1.21.0": "airflow/providers/standard/example_dags/",
}
#: file → why it is not run
LEFT_OUT = {
    "example_kubernetes_executor.py": "needs a Kubernetes cluster",
    "example_local_kubernetes_executor.py": "needs a Kubernetes cluster",
    "tutorial_objectstorage.py": "needs an object store on the internet",
    "tutorial_taskflow_api_virtualenv.py": "installs packages from the internet while it runs",
    "tutorial_dag.py": "needs an outside service",
}


def unpack(folder: Path) -> list[Path]:
    """Unpacks the examples below ``folder``, one sub-folder a package; the DAG files at its top, sorted."""
    found = []
    for requirement, prefix in PACKAGES.items():
        target = folder / requirement.split("==")[0].removeprefix("apache-airflow-").replace("-", "_")
        with tempfile.TemporaryDirectory() as download:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*command, "--dest", download, requirement], check=True, capture_output=True)
            with zipfile.ZipFile(next(Path(download).glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    if name.startswith(prefix) and not name.endswith("/"):
                        path = target / name.removeprefix(prefix)
                        if path.name in LEFT_OUT:
                            continue
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(wheel.read(name))
                        if "/" not in name.removeprefix(prefix) and path.suffix == ".py" and path.name != "__init__.py":
                            found.append(path)
    return sorted(found)
