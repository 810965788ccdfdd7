"""Django's PostgreSQL engine with one trip less for each transaction: ``ENGINE: scheduler_app.postgresql``."""
