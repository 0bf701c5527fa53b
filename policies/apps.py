from django.apps import AppConfig


class PoliciesConfig(AppConfig):
    """What counts as good enough, for which systems, and what it says about the evidence."""

    name = "policies"
    verbose_name = "Policies"

    def ready(self) -> None:
        from policies import receivers  # noqa: F401  (connects them)
