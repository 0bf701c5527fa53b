"""The `writegate` command: what an auditor or a pipeline installs. Needs `cryptography` and nothing of the server.

Exit codes of `verify` and `bundle verify`: 0 it verifies · 1 it does not · 2 it cannot be read, or the arguments are wrong.
Of `check`: 0 allowed · 1 denied · 2 nobody could tell, which denies, or the arguments are wrong.
Of all others: 0 done · 1 the server could not be reached or is in trouble · 2 what was given is refused, or the arguments are wrong.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

from compliance.client import help_texts as texts
from compliance.client.answers import SUBJECT_TYPES
from compliance.client.arguments import Parser, read_digest, read_until, read_wait, read_word
from compliance.client.ask import run_request
from compliance.client.bundle import add_bundle_options, run_fetch, run_verify_bundle
from compliance.client.check import run_check
from compliance.client.options import add_server_options, read_seconds
from compliance.client.push import TIMEOUT_SECONDS, WAIT_SECONDS, run_push
from compliance.client.register import run_fingerprint, run_register
from compliance.client.verify import run_verify

Run = Callable[[argparse.Namespace, TextIO, TextIO], int]


def main(arguments: Sequence[str] | None = None, *, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Run the command; returns its exit code."""
    if out is None:
        # What a terminal cannot show must not break an answer off.
        getattr(sys.stdout, "reconfigure", lambda **_: None)(errors="backslashreplace")
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.run is run_check and bool(given.request) is not bool(given.reason):
        given.parser.error("--request and --reason go together")
    if given.run is run_check and given.request and given.offline is not None:
        given.parser.error("--request asks the service, and --offline does not")
    run: Run = given.run
    return run(given, out or sys.stdout, err or sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="writegate",
        description="Tools for those who work with a Writegate service.",
        epilog=texts.WRITEGATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_verify(commands)
    _add_check(commands)
    _add_bundle(commands)
    _add_fingerprint(commands)
    _add_register(commands)
    _add_push(commands)
    _add_request(commands)
    return parser


def _version() -> str:
    try:
        return version("writegate")
    except PackageNotFoundError:
        return "of a checkout that is not installed"


def _add(commands: Any, name: str, run: Run, *, told: str, description: str, epilog: str) -> argparse.ArgumentParser:
    # Abbreviations are off: `--obs` must not come to mean `--observe`, which always ends with 0.
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=told,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add_verify(commands: Any) -> None:
    verify = _add(
        commands,
        "verify",
        run_verify,
        told="check an export or a proof, offline",
        description="Check offline that an export of the audit trail, or the proof of one entry, is what the log signed.",
        epilog=texts.VERIFY,
    )
    verify.add_argument("file", type=Path, metavar="FILE", help="an export (zip) or a .tlog-proof")
    verify.add_argument(
        "--key", action="append", default=[], metavar="KEY", help="the log's public key, or a file that holds it; repeatable"
    )
    verify.add_argument("--against", type=Path, metavar="CHECKPOINT", help="a checkpoint you hold: is it continued?")
    verify.add_argument("--entry", type=Path, metavar="FILE", help="the entry that a proof is of, where not the one inside it")
    verify.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_check(commands: Any) -> None:
    check = _add(
        commands,
        "check",
        run_check,
        told="ask the gate: may this agent write there, now?",
        description="Ask the gate whether a subject may act at a system now. Only a clear allow ends with 0.",
        epilog=texts.CHECK,
    )
    check.add_argument(
        "--subject",
        required=True,
        type=read_word,
        metavar="S",
        help="the subject's key or key@number; an alias with --type alias",
    )
    check.add_argument("--system", required=True, type=read_word, metavar="T", help="the system's key")
    check.add_argument("--action", default="write", type=read_word, metavar="A", help="default: %(default)s")
    check.add_argument("--type", default="agent", choices=SUBJECT_TYPES, help="what --subject names; default: %(default)s")
    version = check.add_mutually_exclusive_group()
    version.add_argument(
        "--fingerprint",
        type=read_digest,
        metavar="DIGEST",
        help="the digest of the version that is about to run, as `register --quiet` prints it",
    )
    version.add_argument(
        "--fingerprint-of",
        type=Path,
        metavar="DIR",
        help="compute it from an agent's directory; the token then needs the scope `read` too",
    )
    check.add_argument("--observe", action="store_true", help="for a roll-out: tell what would be denied, and end with 0")
    check.add_argument(
        "--request", action="store_true", help="where people can sign it, ask them; needs --reason and the scope `request`"
    )
    check.add_argument("--reason", type=read_word, metavar="TEXT", help="why, for those who sign")
    check.add_argument(
        "--until", type=read_until, metavar="DATE", help="the grant's end that is asked for; default: what is usual"
    )
    check.add_argument(
        "--wait", type=read_wait, metavar="SECONDS", help="for the signatures, and then ask the gate again; default: do not wait"
    )
    check.add_argument(
        "--summary", type=Path, metavar="FILE", help="append the answer as Markdown, such as to $GITHUB_STEP_SUMMARY"
    )
    shown = check.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print the answer as JSON")
    shown.add_argument("--quiet", action="store_true", help="print no answer, only end with it")
    check.add_argument(
        "--offline", type=Path, metavar="FILE", help="ask no server: decide by this offline bundle, as `bundle fetch` fetched it"
    )
    add_bundle_options(check)
    add_server_options(check)


def _add_bundle(commands: Any) -> None:
    bundle = _add(
        commands,
        "bundle",
        run_fetch,
        told="fetch or verify an offline bundle",
        description="Offline bundles: what is allowed at one system, signed, for an enforcement point that may lose the gate.",
        epilog=texts.BUNDLE,
    )
    parts = bundle.add_subparsers(title="commands", required=True, metavar="COMMAND")
    fetch = _add(
        parts,
        "fetch",
        run_fetch,
        told="fetch the newest bundle of a system, where it is newer than the one held",
        description="Fetch the newest bundle of a system, verify it, and put it in the place of the one held.",
        epilog=texts.BUNDLE,
    )
    fetch.add_argument("--out", required=True, type=Path, metavar="FILE", help="where the bundle is kept")
    add_server_options(fetch)
    verify = _add(
        parts,
        "verify",
        run_verify_bundle,
        told="say whether a bundle can be decided by, and what it lists",
        description="Say whether a bundle can be decided by now, and what it lists.",
        epilog=texts.BUNDLE,
    )
    verify.add_argument("file", type=Path, metavar="FILE", help="an offline bundle")
    verify.add_argument("--json", action="store_true", help="print what it states as JSON")
    for parser in (fetch, verify):
        parser.add_argument("--system", required=True, type=read_word, metavar="T", help="the system's key")
        add_bundle_options(parser)


def _add_fingerprint(commands: Any) -> None:
    show = _add(
        commands,
        "fingerprint",
        run_fingerprint,
        told="compute the fingerprint of an agent from its files",
        description="Compute the fingerprint of an agent from its prompts, its tool manifest and writegate.toml.",
        epilog=texts.FINGERPRINT,
    )
    show.add_argument("--json", action="store_true", help="print it as JSON, with the digest of every file")
    _add_directory(show)


def _add_register(commands: Any) -> None:
    register = _add(
        commands,
        "register",
        run_register,
        told="register an agent's version at a service",
        description="Register the agent in a directory. Any change makes a new version; the same again gives the one that is there.",
        epilog=texts.REGISTER,
    )
    add_server_options(register)
    register.add_argument("--run-id", default="", metavar="ID", help="the pipeline's run: repeating a run with it is harmless")
    shown = register.add_mutually_exclusive_group()
    shown.add_argument("--dry-run", action="store_true", help="show what would be sent, and send nothing")
    shown.add_argument("--quiet", action="store_true", help="print the digest of the version, and nothing else")
    _add_directory(register)


def _add_push(commands: Any) -> None:
    push = _add(
        commands,
        "push",
        run_push,
        told="hand evidence files to a service",
        description=(
            "Hand in evidence files of any format that the service reads, and say what became of each. One is recorded whole or not at "
            "all, and sending it again is harmless."
        ),
        epilog=texts.PUSH,
    )
    push.add_argument("files", nargs="+", type=Path, metavar="FILE", help="evidence, at most 512 MiB each; a zip archive 2 GiB")
    push.add_argument("--source", required=True, type=read_word, metavar="S", help="who vouches for it; a file may name no other")
    push.add_argument("--format", default="", metavar="F", help="the files' format; default: recognised from each file")
    push.add_argument("--subject", default="", metavar="NAME", help="the model's name as written, where the format has none")
    push.add_argument("--run-id", default="", metavar="ID", help="the pipeline's run: repeating a run with it is harmless")
    push.add_argument(
        "--wait",
        type=read_seconds,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help="for the service to read one file; default: %(default)g",
    )
    add_server_options(push, timeout=TIMEOUT_SECONDS)


def _add_request(commands: Any) -> None:
    request = _add(
        commands,
        "request",
        run_request,
        told="ask for write access",
        description="File a request for write access, as the person that the token belongs to. People sign it; nobody signs here.",
        epilog=texts.REQUEST,
    )
    request.add_argument("--subject", type=read_word, metavar="S@N", help="the subject's version")
    request.add_argument("--system", action="append", type=read_word, metavar="T", help="the system's key; repeatable")
    request.add_argument("--action", action="append", type=read_word, metavar="A", help="default: write; repeatable")
    request.add_argument("--until", metavar="DATE", help="the grant's end: a date (its first instant in UTC) or a time")
    request.add_argument(
        "--denial",
        type=Path,
        metavar="FILE",
        help="ask for what was denied, in place of the above: what `check --json` printed, or -",
    )
    request.add_argument(
        "--emergency", action="store_true", help="say so to who signs the request about a denial; it changes nothing"
    )
    request.add_argument("--wait", type=read_wait, metavar="SECONDS", help="for the signatures; default: do not wait")
    request.add_argument("--reason", required=True, type=read_word, metavar="TEXT", help="why, for those who sign")
    request.add_argument("--run-id", default="", metavar="ID", help="the pipeline's run: repeating a run with it is harmless")
    add_server_options(request)


def _add_directory(parser: argparse.ArgumentParser) -> None:
    """Add what is about an agent's own files."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="the agent's directory, with writegate.toml")
    parser.add_argument(
        "--prompt", action="append", default=[], metavar="PATTERN", help="the prompts, in place of the file's; repeatable"
    )
    parser.add_argument("--tools", action="append", default=[], metavar="PATTERN", help="the tool manifest, likewise; repeatable")
