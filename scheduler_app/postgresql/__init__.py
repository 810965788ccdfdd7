"""Django's PostgreSQL engine, with one trip to the server less for each transaction: ``ENGINE: scheduler_app.postgresql``."""
