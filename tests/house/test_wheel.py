"""The package as a host project installs it: one wheel, unpacked beside the project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

USE_IT = """
import json, django
django.setup()
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.template.loader import get_template
call_command("check", verbosity=0)
page, style = get_template("500.html").origin.name, finders.find("scheduler/ui.css")
print(json.dumps([settings.API_PACKAGE, str(settings.HOME), page, style]))
"""


def test_the_wheel_brings_everything_under_names_that_are_ours(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    subprocess.run([*build, "-w", str(tmp_path), str(ROOT)], check=True, cwd=tmp_path, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    installed = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    assert {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")} == {
        "scheduler_app",
        "scheduler_app_api",
    }
    env = {key: value for key, value in os.environ.items() if not key.startswith("SCHEDULER_")}
    env |= {"PYTHONPATH": str(installed), "DJANGO_SETTINGS_MODULE": "scheduler_app.settings"}
    used = subprocess.run([sys.executable, "-c", USE_IT], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert used.returncode == 0, used.stderr
    package = installed / "scheduler_app"
    assert json.loads(used.stdout.splitlines()[-1]) == [
        "scheduler_app_api",
        str(tmp_path / ".scheduler"),
        str(package / "templates/500.html"),
        str(package / "static/scheduler/ui.css"),
    ]
