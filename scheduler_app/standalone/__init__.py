"""Everything in one command: the database, the web server, the scheduler and the DAG processor under one supervisor.

``prepare`` makes folders, keys and the cluster; ``start`` is ``manage.py standalone``; ``components`` is the table of
what runs; ``supervisor`` starts, restarts and stops it.
"""
