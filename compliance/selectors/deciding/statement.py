"""The first of a decision's two statements: all that the answers rest on, and at which version each row was read.

It calls functions of the database's own (migrations 0013 and 0014), which are stable: all they read is what this one statement sees.
Rows that can be moved come with their `xmin`: the second statement locks them and compares. What is only ever inserted needs none: what
was committed before the question was asked is seen here.
"""

QUESTIONS = """
SELECT found FROM writegate_read($1::text[], $2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::timestamptz)
"""
"""Parameters: token digests; by question, the name as asked, the key and the number in it, fingerprint and system key; the instant.
A row a token, JSON of who asks and of what is in force; then a row a question, JSON of what was found.
"""

MEMBERS = "SELECT route, system, member FROM writegate_read_members($1::bigint[], $2::bigint[], $3::timestamptz)"
"""Parameters: by question, the route's version and the system, by row id; the instant."""
