"""The life of attempts: claim, supervise, record. ``loop.py`` is the entry, ``process.py`` the process around it."""
