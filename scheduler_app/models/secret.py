"""Variables and connections: what tasks ask for by name. Values rest encrypted (``scheduler_app.secrets``)."""

from __future__ import annotations

from django.db import models


class Variable(models.Model):
    key = models.CharField(max_length=250, unique=True)
    #: Fernet token of the text value
    value_encrypted = models.TextField()
    description = models.TextField(null=True, blank=True)

    class Meta:
        db_table = "scheduler_variable"

    def __str__(self) -> str:
        return self.key


class Connection(models.Model):
    connection_id = models.CharField(max_length=250, unique=True)
    conn_type = models.CharField(max_length=500)
    description = models.TextField(null=True, blank=True)
    host = models.TextField(null=True, blank=True)
    login = models.TextField(null=True, blank=True)
    schema = models.TextField(null=True, blank=True)
    port = models.IntegerField(null=True, blank=True)
    #: Fernet tokens
    password_encrypted = models.TextField(null=True, blank=True)
    extra_encrypted = models.TextField(null=True, blank=True)

    class Meta:
        db_table = "scheduler_connection"

    def __str__(self) -> str:
        return self.connection_id
