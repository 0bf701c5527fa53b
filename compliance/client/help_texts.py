"""What `--help` of each command ends with: examples, and exit codes."""

WRITEGATE = """\
examples:
  writegate check --help
  writegate check --subject hr-agent --system hr-prod --server https://gate.example.org --token-file /run/secrets/writegate

exit codes: each command's --help tells its own; 0 is the only yes, and wrong arguments end with 2
"""

VERIFY = """\
examples:
  writegate verify trail.zip
  writegate verify trail.zip --key 'gate.example.org/ledger+1a2b3c4d+AZ…' --against checkpoint-of-march
  writegate verify entry-4711.tlog-proof --key ledger.key.pub

Where it does not verify: keep the file as it is, and ask for another, by another road. Where that one does not either, somebody
wrote past the service or signs another log: hand both files and the checkpoint that you hold to whoever answers for security.

exit codes: 0 it verifies · 1 it does not · 2 it cannot be read, or the arguments are wrong
"""

CHECK = """\
examples:
  writegate check --subject hr-agent --system hr-prod --server https://gate.example.org --token-file /run/secrets/writegate
  writegate check --subject hr-agent@3 --system hr-prod --fingerprint "$(writegate register agents/hr --quiet)"
  writegate check --subject hr-agent --system hr-prod --fingerprint-of agents/hr --summary "$GITHUB_STEP_SUMMARY"
  writegate check --subject gpt-5 --type model --system hr-prod --observe
  writegate check --subject hr-agent --system hr-prod --offline hr-prod.bundle --key ledger.key.pub
  writegate check --subject hr-agent --system hr-prod --request --reason 'the nightly sync needs it' --wait 3600
  writegate check --subject hr-agent --system hr-prod --json > denied.json || writegate request --denial denied.json --reason '…'

The token needs the scope `decide`, or `decide:SYSTEM`. Nothing but a clear, whole and current allow is one: no answer, half an
answer, an odd answer or one about something else is a deny. With --observe the gate is asked and records the question as usual.
With --request a denial that people can sign becomes a request; once they have signed, the gate is asked again.

exit codes: 0 allowed · 1 denied · 2 nobody could tell, which denies, or the arguments are wrong
with --observe: 0 whatever the answer; 2 where the arguments are wrong
"""

BUNDLE = """\
examples:
  writegate bundle fetch --system hr-prod --out hr-prod.bundle --key ledger.key.pub --server https://gate.example.org
  writegate bundle verify hr-prod.bundle --system hr-prod --key ledger.key.pub
  writegate check --subject hr-agent --system hr-prod --offline hr-prod.bundle --key ledger.key.pub

The token needs the scope `decide`, or `decide:SYSTEM`. The key is the log's, from another road than this one: `manage.py ledger_key`
prints it. A bundle counts for minutes: fetch it often, which costs little while nothing changes. What was seen is kept beside
it, so that no older one is taken, nor a clock that was set back.

exit codes of fetch: 0 fetched, or the newest is held · 1 could not: no answer, or the server is in trouble
                     2 refused, or the arguments are wrong
exit codes of verify: 0 it can be decided by · 1 it cannot · 2 it cannot be read, or the arguments are wrong
"""

FINGERPRINT = """\
examples:
  writegate fingerprint agents/hr
  writegate fingerprint agents/hr --json
  writegate fingerprint . --prompt 'prompts/**' --prompt system.md --tools mcp.json

`writegate.toml` in DIR names the agent:
  [agent]
  key = "hr-agent"
  harness = "our-harness"
  harness_version = "2.1"
  models = ["claude-opus-4.8@1"]
  prompts = ["prompts/**"]    # the default
  tools = ["tools.json"]      # default: tools.json and mcp.json, as far as they are there

exit codes: 0 done · 2 refused, or the arguments are wrong
"""

REGISTER = """\
examples:
  writegate register agents/hr --server https://gate.example.org --token-file /run/secrets/writegate
  WRITEGATE_TOKEN=wg_… writegate register . --server https://gate.example.org --run-id "$PIPELINE_RUN"
  writegate register . --server https://gate.example.org --dry-run

The token needs the scope `register`.

exit codes: 0 registered, or known already · 1 could not: no answer, or the server is in trouble
            2 refused, or the arguments are wrong
"""

PUSH = """\
examples:
  writegate push results.json --source my-lab --server https://gate.example.org --token-file /run/secrets/writegate
  writegate push results/*.json logs/*.eval --source my-lab
  writegate push table.csv --source my-lab --format writegate-csv --run-id "$PIPELINE_RUN"

The token needs the scope `submit_evidence`. A file that names no source is recorded as --source says, and one
that names another is refused.
Observations under a name that nobody has assigned are recorded, and count for nothing until somebody says whom it means.

exit codes: 0 all recorded, or known already · 1 could not: no answer, the server is in trouble, or a file was not read in time
            2 at least one file was refused, or the arguments are wrong
"""

REQUEST = """\
examples:
  writegate request --subject hr-agent@3 --system hr-prod --until 2026-12-31 --reason 'the nightly sync needs it'
  writegate request --subject hr-agent@3 --system hr-prod --system hr-archive --action write --until 2026-12-31T18:00:00Z \\
    --reason 'the nightly sync needs it' --run-id "$PIPELINE_RUN"
  writegate request --denial denied.json --reason 'the nightly sync needs it' --wait 3600

The token needs the scope `request`, and its person the role requester or system owner. A denial is what `check --json` printed to a
token of the same person within the last hour; it is asked for once, and asking again gives the request that is there.

exit codes: 0 filed; with --wait: signed · 1 could not: no answer, the server is in trouble, or --wait was over before the signatures
            2 refused, rejected or taken back, or the arguments are wrong
"""
