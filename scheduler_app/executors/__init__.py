"""Where attempts run. ``base.py`` is the contract; one file an executor."""
