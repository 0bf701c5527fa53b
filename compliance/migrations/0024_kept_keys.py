"""What signatures and submissions are bound by stays; see the same step of the evaluations app.

An account or a token under another person would sign and submit as her; a role given by another, or a hold on another, would let those
sign who may not; an upload by another would take from her what she handed in.
"""

from importlib import import_module

from django.db import migrations

keep = import_module("evaluations.migrations.0010_kept_keys").keep

KEPT = {
    "compliance_team": "id key",
    "compliance_person": "id",
    "compliance_user": "id person_id",
    "compliance_rolemembership": "id person_id role team_id given_by starts_at",
    "compliance_servicetoken": "id token_digest scopes person_id team_id expires_at",
    "compliance_signinghold": "id person_id cause placed_by placed_at",
    "compliance_upload": "id uid file_digest source subject published_at submitted_by submitted_as",
    "compliance_signingkey": "id name key_id algorithm verifier_key announced_index",
}


class Migration(migrations.Migration):
    dependencies = [("compliance", "0023_deciding_probes"), ("policies", "0008_kept_keys")]

    operations = [keep(table, columns) for table, columns in KEPT.items()]
