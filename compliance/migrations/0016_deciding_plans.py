"""The plans of the two statements of a decision: rows are looked up by their keys, whatever size the tables had when a plan was made.

A connection keeps its plans for as long as it lives, and a plan that was made while a table was small reads the whole of it ever after.
And what a subject's id means is looked into only where it does not name the one version of a subject: the filter of a join came after
the function that it should have spared.
"""

from importlib import import_module

from django.db import migrations

before = import_module("compliance.migrations.0014_deciding_together")

MEANT = "LEFT JOIN LATERAL writegate_version(q.name, q.key, q.number, q.fingerprint, named.id, at) meant ON NOT simple.one"
SPARED = """LEFT JOIN LATERAL (
            SELECT m.* FROM writegate_version(q.name, q.key, q.number, q.fingerprint, named.id, at) m WHERE NOT simple.one OFFSET 0
        ) meant ON true"""
READ = before.READ.replace(MEANT, SPARED).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
READ_AS_BEFORE = before.READ.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

FUNCTIONS = ("writegate_read", "writegate_read_members", "writegate_decide")
BY_KEY = "".join(f"ALTER FUNCTION {name} SET enable_seqscan = off;\n" for name in FUNCTIONS)
AS_IT_COMES = "".join(f"ALTER FUNCTION {name} RESET enable_seqscan;\n" for name in FUNCTIONS)


class Migration(migrations.Migration):
    dependencies = [("compliance", "0015_verdict_mismatched")]

    operations = [
        migrations.RunSQL(READ, READ_AS_BEFORE),
        migrations.RunSQL(BY_KEY, AS_IT_COMES),
    ]
