"""A hold: somebody stopped one run or one task (or a DAG's new runs), says why, and perhaps until when."""

from __future__ import annotations

from django.db import models


class Held(models.Model):
    held_at = models.DateTimeField(null=True, blank=True)
    held_by = models.TextField(null=True, blank=True)
    held_why = models.TextField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
