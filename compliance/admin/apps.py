"""Puts our site in the place of Django's own, and loads the pages of this app."""

from importlib import import_module

from django.contrib.admin.apps import AdminConfig
from django.db.models import Model

PAGES = (
    "people",
    "ledger",
    "exports",
    "outbox",
    "systems",
    "sources",
    "requests",
    "decisions",
    "grants",
    "waivers",
    "verdicts",
    "routing",
    "resting",
    "impact",
    "names",
    "uploads",
    "activations",
    "definitions",
    "tightened",
)
ENTRANCE_APPS = ("account", "mfa", "socialaccount")


class ConsoleConfig(AdminConfig):
    """`django.contrib.admin` under our site; `manage.py` finds every app's `admin` module as usual."""

    default_site = "compliance.admin.site.ConsoleSite"
    default = False

    def ready(self) -> None:
        super().ready()
        for page in PAGES:
            import_module(f"compliance.admin.{page}")
        # Not at the top: both need the app registry to be ready.
        from django.apps import apps
        from django.contrib import admin
        from django.contrib.auth.models import Group

        # Rights come from roles that are given from a day on and recorded; Django's groups would be a second, silent road to them.
        # Factors and addresses are kept by their owners and by our services: allauth's own lists would show and change them.
        others: list[type[Model]] = [model for label in ENTRANCE_APPS for model in apps.get_app_config(label).get_models()]
        closed: list[type[Model]] = [Group, *others]
        for model in closed:
            if admin.site.is_registered(model):
                admin.site.unregister(model)
