"""The scheduler: ``loop.py`` holds the table of phases, ``process.py`` is the process around it."""
