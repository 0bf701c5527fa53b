"""The console. Empty on purpose: `compliance.admin.apps` is imported before the models are ready, and loads the pages when they are."""
