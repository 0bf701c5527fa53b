"""The first of a decision's two statements: all that the answer rests on, and at which version each row was read.

It calls functions of the database's own (migration 0013), which are stable: all they read is what this one statement sees. Rows that
can be moved come with their `xmin`: the second statement locks them and compares. What is only ever inserted needs none: what was
committed before the question was asked is seen here.
"""

QUESTIONS = """
SELECT CASE WHEN q.place = 1 THEN writegate_caller($1::text, f.in_force, g.at) END,
    writegate_question(q.name, q.key, q.number, q.fingerprint, q.system, f.in_force, g.at)
FROM (SELECT $2::timestamptz AS at) g, (SELECT writegate_in_force() AS in_force OFFSET 0) f,
    ROWS FROM (json_to_recordset($3::json) AS (name text, key text, number int, fingerprint text, system text))
        WITH ORDINALITY AS q(name, key, number, fingerprint, system, place)
ORDER BY q.place
"""
"""Parameters: token digest, instant, and an array with, by question, the name as asked, the key and number in it, fingerprint and
system key, as JSON. A row a question: JSON of who asks and of what is in force (in the first row), JSON of what was found.
"""

MEMBERS = """
SELECT q.route, q.system, writegate_subject(link.member_id, q.system, y.domain, f.in_force, g.at)
FROM (SELECT $1::timestamptz AS at) g, (SELECT writegate_in_force() AS in_force OFFSET 0) f,
    ROWS FROM (json_to_recordset($2::json) AS (route bigint, system bigint)) WITH ORDINALITY AS q(route, system, place)
JOIN policies_system y ON y.id = q.system
JOIN evaluations_subjectversionmember link ON link.version_id = q.route
ORDER BY q.place, link.id
"""
"""Parameters: instant, and an array with, by question, the route's version and the system, by row id, as JSON."""
