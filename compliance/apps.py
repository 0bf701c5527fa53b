from django.apps import AppConfig


class ComplianceConfig(AppConfig):
    """Who signed, what is allowed, what was answered, and the proof."""

    name = "compliance"
    verbose_name = "Compliance"

    def ready(self) -> None:
        # Each import connects what its module holds: the Celery application as this process's default, the start-up checks,
        # the receivers.
        from compliance import celery, checks, receivers  # noqa: F401
