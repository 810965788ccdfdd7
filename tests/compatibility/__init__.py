"""The example DAG files of Airflow's own packages, loaded and run unmodified; unpacked at run time, never kept."""
