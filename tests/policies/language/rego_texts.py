"""The Rego of which the peer's modules are made: NAME is a clause, LEAF a comparison, BAR its bar, SOURCE a preferred source."""

# What concerns one observation: functions without comprehensions, of which the engine shares one among its callers.
PRELUDE = """
package peer

import rego.v1

speaks(q, c) if {
	not seen_later(c)
	c.identity_problem == ""
	c.about == q.about
	c.metric == q.metric
	c.benchmark == q.benchmark
	c.version in q.versions
	c.slice == wanted_slice(q)
	c.run_status == "complete"
	c.ruling != "retracted"
}

seen_later(c) if {
	is_number(c.ended)
	c.ended > input.as_of
}

wanted_slice(q) := input.domain if q.slice == "resource.domain"

wanted_slice(q) := q.slice if q.slice != "resource.domain"

no_domain(q) if {
	q.slice == "resource.domain"
	input.domain == "any"
}

broken(q, c) if c.value < q.minimum

broken(q, c) if {
	is_number(q.maximum)
	c.value > q.maximum
}

broken(_, c) if {
	is_number(c.n)
	c.lost > c.n
}

broken(_, c) if {
	is_number(c.n)
	is_number(c.k)
	c.k > c.n * 1000000
}

in_dispute(c) if c.ruling in ["disputed", "dispute_upheld"]

clears(q, c) if {
	not in_dispute(c)
	c.trust >= q.min_trust
	c.provenance >= q.min_provenance
	attested(q, c)
}

attested(q, _) if not q.require_attestation

attested(_, c) if c.attested

thin(q, c) if {
	not is_number(c.n)
	q.statistic != "point"
}

thin(q, c) if {
	not is_number(c.n)
	is_number(q.min_samples)
}

thin(q, c) if {
	is_number(c.n)
	is_number(q.min_samples)
	c.n < q.min_samples
}

thin(q, c) if {
	is_number(q.max_error_share)
	not c.errors_stated
}

thin(q, c) if {
	is_number(q.max_error_share)
	c.errors_stated
	c.lost * 1000000 > q.max_error_share * c.n
}

dateless(q, c) if {
	is_number(q.max_age)
	not is_number(c.ended)
}

aged(q, c) if {
	is_number(q.max_age)
	is_number(c.ended)
	c.ended < input.as_of - q.max_age
}

weight(q, c) := "weak" if thin(q, c)

else := "weak" if dateless(q, c)

else := "aged" if aged(q, c)

else := "full"

replaces(newer, c) if {
	same_run(newer, c)
	newer.ended > c.ended
}

replaces(newer, c) if {
	same_run(newer, c)
	newer.ended == c.ended
	newer.supersedes == c.evidence
	c.supersedes != newer.evidence
}

same_run(newer, c) if {
	newer.evidence != c.evidence
	newer.run_ended
	c.run_ended
	is_number(newer.ended)
	is_number(c.ended)
	newer.source == c.source
	newer.harness == c.harness
	newer.version == c.version
}

meets(q, c, bar) if {
	q.higher
	c.measure >= bar
}

meets(q, c, bar) if {
	not q.higher
	c.measure <= bar
}

rank := {"error": 0, "contested": 1, "missing": 2, "stale": 3, "fail": 4, "pass": 5}

default allow := false

allow if {
	every name in deciding { results[name] == "pass" }
}

answer := {"allow": allow, "results": results}
"""

# What concerns one clause: which of its observations count, are in dispute, or cannot be right.
CLAUSE = """
items_NAME := input.candidates.NAME

heard_NAME := {i | some i; c := items_NAME[i]; speaks(q_NAME, c)}

wrong_NAME := {i | some i in heard_NAME; broken(q_NAME, items_NAME[i])}

sound_NAME := heard_NAME - wrong_NAME

live_NAME := {i | some i in sound_NAME; clears(q_NAME, items_NAME[i])}

strong_NAME := {i | some i in live_NAME; weight(q_NAME, items_NAME[i]) != "weak"}

replaced_NAME := {i | some i in sound_NAME; some j in strong_NAME; replaces(items_NAME[j], items_NAME[i])}

disputes_NAME := {i | some i in sound_NAME; in_dispute(items_NAME[i])} - replaced_NAME

counts_NAME := live_NAME - replaced_NAME
"""

# What concerns one comparison: who stands on which side of its bar, and which side decides.
LEAF = """
good_LEAF := {i | some i in counts_NAME; meets(q_NAME, items_NAME[i], BAR); weight(q_NAME, items_NAME[i]) == "full"}

old_LEAF := {i | some i in counts_NAME; meets(q_NAME, items_NAME[i], BAR); weight(q_NAME, items_NAME[i]) == "aged"}

bad_LEAF := {i | some i in counts_NAME; not meets(q_NAME, items_NAME[i], BAR)}

for_LEAF := {source | some i in good_LEAF; source := items_NAME[i].source}

against_LEAF := {source | some i in bad_LEAF; source := items_NAME[i].source}

PREFERENCE

default LEAF := "missing"

LEAF := "missing" if no_domain(q_NAME)

else := "error" if count(wrong_NAME) > 0

else := "contested" if count(disputes_NAME) > 0

else := prefers_LEAF if {
	count(good_LEAF) > 0
	count(bad_LEAF) > 0
}

else := "fail" if count(bad_LEAF) > 0

else := "pass" if count(good_LEAF) > 0

else := "stale" if count(old_LEAF) > 0
"""

# The first preferred source that says anything decides alone, unless it is of two minds.
PREFERENCE = """
else := "contested" if {
	SOURCE in for_LEAF
	SOURCE in against_LEAF
}

else := "pass" if SOURCE in for_LEAF

else := "fail" if SOURCE in against_LEAF
"""
