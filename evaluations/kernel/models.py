"""The two kinds of table. A model's docstring says which it is.

**Fact**: insert only. The database refuses UPDATE, DELETE and TRUNCATE by trigger, and the runtime role holds INSERT and SELECT only;
what is here in Python merely fails earlier and with a better sentence.

**State**: a row with a status or pointer, moved by a service. A trigger refuses any change in a transaction that no service opened.
"""

from typing import Any, NoReturn, Self

from django.db import models

from evaluations.kernel.errors import DomainError, ErrorKind


class FactIsImmutable(DomainError):
    """Somebody tried to change or delete a fact."""

    code = "fact_is_immutable"
    kind = ErrorKind.CONFLICT


class FactQuerySet(models.QuerySet[Any]):
    """Reads and inserts; never changes."""

    def _refuse(self) -> NoReturn:
        raise FactIsImmutable(f"{self.model._meta.verbose_name} rows are facts: record a new one instead of changing one")

    def update(self, **kwargs: Any) -> int:
        self._refuse()

    def delete(self) -> tuple[int, dict[str, int]]:
        self._refuse()

    def bulk_update(self, objs: Any, fields: Any, batch_size: int | None = None) -> int:
        self._refuse()

    update.alters_data = True  # type: ignore[attr-defined]
    delete.alters_data = True  # type: ignore[attr-defined]


class Fact(models.Model):
    """Base of insert-only tables."""

    objects = models.Manager.from_queryset(FactQuerySet)()

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        if not self._state.adding:
            raise FactIsImmutable(f"{self._meta.verbose_name} {self.pk} is a fact: record a new one instead of changing it")
        super().save(*args, **{**options, "force_insert": True})

    def delete(self, *args: Any, **options: Any) -> tuple[int, dict[str, int]]:
        raise FactIsImmutable(f"{self._meta.verbose_name} {self.pk} is a fact and stays")


class State(models.Model):
    """Base of tables whose rows are moved, each by exactly one service."""

    class Meta:
        abstract = True

    @classmethod
    def claim(cls, pk: Any, *, expected: dict[str, Any], moved_to: dict[str, Any]) -> bool:
        """Move one row by conditional update; True when this caller won. Losing a race is a normal answer."""
        return cls._default_manager.filter(pk=pk, **expected).update(**moved_to) == 1

    def reload(self) -> Self:
        """Return the row as it now stands."""
        self.refresh_from_db()
        return self
