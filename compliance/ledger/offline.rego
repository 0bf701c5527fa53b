# What is allowed at one system, offline. Made by Writegate; the list beside it is signed and ends.
package writegate["@PLACE@"]

import rego.v1

default allow := false

list := data.writegate_lists["@PLACE@"]

# A line counts from the making of the list on, give or take for clocks that differ, and before the list's end and its own.
allow if {
	now := time.now_ns()
	now >= list.issued_at_ns - list.leeway_ns
	now < list.expires_at_ns
	input.resource.type == "system"
	input.resource.id == list.system
	some line in meant
	line.action == input.action.name
	now < line.valid_until_ns
	fits_fingerprint(line)
}

# An alias means a version; so does a key with a number.
meant contains line if {
	input.subject.type == "alias"
	some name in list.aliases[input.subject.id][input.action.name]
	some line in list.numbered[name]
}

meant contains line if {
	some line in list.numbered[input.subject.id]
	is_kind(line)
}

# A key alone means the version that runs, unless a fingerprint says which.
meant contains line if {
	some name in list.keys[input.subject.id]
	some line in list.numbered[name]
	is_kind(line)
	line.runs
}

meant contains line if {
	some name in list.keys[input.subject.id]
	some line in list.numbered[name]
	is_kind(line)
	line.fingerprint == input.subject.properties.fingerprint
}

is_kind(line) if input.subject.type == line.kind

is_kind(_) if input.subject.type == "subject"

fits_fingerprint(line) if line.fingerprint == input.subject.properties.fingerprint

fits_fingerprint(_) if not states_fingerprint

states_fingerprint if {
	some name, _ in input.subject.properties
	name == "fingerprint"
}
