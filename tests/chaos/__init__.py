"""Kills real processes in the middle of real work and holds the ledger of the tasks against the database (I1, I3)."""
