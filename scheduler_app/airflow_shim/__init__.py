"""Lets unmodified Airflow DAG files import ``airflow…``: a finder on the import path, and a table of names."""
