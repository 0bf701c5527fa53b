from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    """What was measured, about whom, by whom."""

    name = "evaluations"
    verbose_name = "Evidence"

    def ready(self) -> None:
        from evaluations import receivers  # noqa: F401  (connects them)
