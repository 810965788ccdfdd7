"""A bundle: a named folder of DAG files, owned by one processor at a time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scheduler_app.conf import Conf

EXAMPLES = "examples"
DAGS = "dags"
EXAMPLES_FOLDER = Path(__file__).resolve().parent.parent / "examples" / "dags"


@dataclass(frozen=True, slots=True)
class Bundle:
    name: str
    folder: Path
    #: only this file, or files below this folder, are looked at ("" = all); a narrowed processor leaves the rest alone
    below: str = ""

    def covers(self, relative_path: str) -> bool:
        """Whether the file is this processor's to parse, and to call gone."""
        return not self.below or relative_path == self.below or relative_path.startswith(f"{self.below}/")


def bundles_of(values: Conf, subdir: Path | None = None) -> list[Bundle]:
    """The bundles of the settings; or `subdir` alone: a folder or file of the DAG folder, else a bundle of its own."""
    folder = values.dags_folder.absolute()
    if subdir is not None:
        wanted = subdir.absolute()
        if wanted == folder or folder in wanted.parents:
            below = wanted.relative_to(folder).as_posix()
            return [Bundle(DAGS, folder, "" if below == "." else below)]
        if wanted.is_file():
            return [Bundle(wanted.as_posix(), wanted.parent, wanted.name)]
        return [Bundle(wanted.as_posix(), wanted)]
    found = [Bundle(DAGS, folder)]
    if values.load_examples:
        found.append(Bundle(EXAMPLES, EXAMPLES_FOLDER))
    return found
