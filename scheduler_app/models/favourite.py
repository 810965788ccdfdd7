"""The DAGs that people keep at hand."""

from __future__ import annotations

from django.db import models

from .dag import DagModel


class FavouriteQuerySet(models.QuerySet["Favourite"]):
    def of(self, user_id: str | None) -> FavouriteQuerySet:
        return self.filter(user_id=user_id or "")


class Favourite(models.Model):
    """One DAG of one person; ``user_id`` is the text of the user's key, as nothing refers to the user's table."""

    id = models.BigAutoField(primary_key=True)
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="favourites", db_index=False)
    user_id = models.CharField(max_length=250)

    objects = FavouriteQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_favourite"
        constraints = [models.UniqueConstraint(fields=["dag", "user_id"], name="favourite_once")]

    def __str__(self) -> str:
        return f"{self.dag_id} of {self.user_id}"
