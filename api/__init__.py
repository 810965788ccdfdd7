"""Airflow 3's public REST API, ``/api/v2``, in Django REST framework."""
