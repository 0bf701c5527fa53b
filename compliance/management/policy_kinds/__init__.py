"""What `manage.py policy` can do, one module a kind.

Each module has `HELP` (one sentence), `EXAMPLES` (command lines with what they are for), `add_arguments(parser)`, and
`run(out, options) -> int`, which writes to the stream `out` and returns the exit code.
"""
