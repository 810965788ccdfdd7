"""DAG files, what Apache Airflow 3.3.2 made of them (facts only), and a program that compares a running server with it.

    python -m tests.conformance --base-url http://127.0.0.1:8080 --markers FILE

The server reads ``dags/`` (``SCHEDULER_DAGS_FOLDER``) and has ``CONFORMANCE_OUT=FILE`` in its environment, the file
into which callbacks write. ``cases`` is the table; ``facts/NAME.json`` holds what a case must give.
"""
