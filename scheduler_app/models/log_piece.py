"""Pieces of logs that were written on other machines (``log_store``)."""

from __future__ import annotations

from django.db import models


class LogPiece(models.Model):
    """``name`` says what part of which file it is; ``log`` is the path of the whole below the log folder."""

    id = models.BigAutoField(primary_key=True)
    log = models.TextField()
    name = models.CharField(max_length=80)
    content = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_log_piece"
        constraints = [models.UniqueConstraint(fields=["log", "name"], name="log_piece_once")]
        indexes = [models.Index(fields=["created_at"], name="log_piece_age")]

    def __str__(self) -> str:
        return f"{self.log} {self.name}"
