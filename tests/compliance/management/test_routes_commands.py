"""`import_routes` and `export_routes`: what they print, and that a refusal is 2 and changes nothing."""

import io
from pathlib import Path

import pytest
from django.core.management import call_command

from compliance.models import RoutingInventory
from evaluations.services.subjects import assign_alias
from tests.support import routing, signing
from tests.support.world import FIXTURES

pytestmark = pytest.mark.django_db


def run(command: str, *arguments: object) -> tuple[int, str, str]:
    """Run a command; return exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(command, *map(str, arguments), stdout=out, stderr=err)
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_a_file_is_handed_in_shown_against_a_system_and_given_back(tmp_path: Path) -> None:
    land = signing.ground("91")
    routing.models("a", "b")
    routing.grant_for(land, land.version)
    code, out, err = run("import_routes", FIXTURES / "routing" / "fallbacks.yaml", "--system", "hr-prod", "--name", "gw")
    assert (code, err) == (0, "")
    assert "is in effect for `gw`" in out
    assert "registered: r@1" in out
    assert "  no_grant: r → fallback → b → lab/b" in out
    assert "  unknown_model: r → fallback → c → lab/c" in out
    assert "made-up" not in out
    code, out, _ = run("import_routes", FIXTURES / "routing" / "fallbacks.yaml", "--name", "gw")
    assert (code, "in effect already" in out, "  model-a@1: r → lab/a" in out) == (0, True, True)
    file = tmp_path / "config.yaml"
    file.write_bytes(routing.gateway({"r": "lab/a", "b": "lab/b"}))
    run("import_routes", file)
    code, out, err = run("export_routes", "--system", "hr-prod")
    assert (code, err) == (0, "")
    assert out == "model_list:\n- model_name: r\n  litellm_params:\n    model: lab/a\n"


def test_a_refusal_is_2_names_the_line_and_keeps_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("model_list: []\nmodel_list: []\n")
    code, out, err = run("import_routes", file)
    assert (code, out) == (2, "")
    assert err.startswith("error: config.yaml, line 2: a key stands here for the second time")
    for arguments in ((tmp_path / "none.yaml",), (tmp_path,), (file, "--system", "nowhere"), (file, "--name", "A B")):
        assert run("import_routes", *arguments)[0] == 2
    assert not RoutingInventory.objects.exists()
    assert run("export_routes", "--system", "nowhere")[0] == 2
    signing.register_system(actor=routing.world.ACTOR, key="hr-prod", title="HR", domain="hr")
    code, _, err = run("export_routes", "--system", "hr-prod")
    assert (code, "import_routes" in err) == (2, True)


def test_requests_to_openrouter_are_handed_in_and_come_back_in_their_own_form(tmp_path: Path) -> None:
    land = signing.ground("91")
    routing.grant_for(land, land.version)
    assign_alias(actor=routing.world.ACTOR, name_as_written="lab/a at one (unknown)", subject_version=land.version)
    code, out, err = run("import_routes", FIXTURES / "routing" / "openrouter.yaml", "--system", "hr-prod")
    assert (code, err, "made-up" in out) == (0, "", False)
    assert "is in effect for `openrouter`" in out
    assert "hr-agent: not cleared\n  unknown_model: hr-agent → lab/a at one (bf16, effort high)\n" in out
    assert "plain: cleared\n" in out
    code, out, err = run("export_routes", "--system", "hr-prod", "--name", "openrouter")
    assert (code, err) == (0, "")
    file = tmp_path / "allowed.yaml"
    file.write_text(out)
    code, out, _ = run("import_routes", file, "--name", "again", "--system", "hr-prod")
    assert (code, out.splitlines()[-1]) == (0, "plain: cleared")
    file.write_text("model: lab/a\n")
    code, out, err = run("import_routes", file)
    assert (code, out) == (2, "")
    assert err.startswith(
        "error: allowed.yaml, line 1: a request stands here without a name; write it as `NAME: {model: …}` below"
    )
