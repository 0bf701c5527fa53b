"""`writegate fingerprint`: the same files give the same fingerprint whatever else differs, and what is not whole is refused."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from compliance.client import fingerprint as module
from compliance.client.fingerprint import Refused, fingerprint
from tests.compliance.client.test_cli import run

SETTINGS = """\
[agent]
key = "hr-agent"
title = "HR agent"
harness = "gym-harness"
harness_version = "2.1"
models = ["model-b", "model-a@1", "model-b"]
"""


def agent(directory: Path, settings: str = SETTINGS) -> Path:
    (directory / "prompts" / "deep" / "er").mkdir(parents=True)
    (directory / "writegate.toml").write_text(settings)
    (directory / "prompts" / "system.md").write_bytes(b"You help.\r\n")
    (directory / "prompts" / "deep" / "er" / "tone.md").write_bytes(b"Kindly.")
    (directory / "tools.json").write_bytes(b'{"tools": []}')
    return directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return agent(tmp_path / "agent")


def test_the_canonical_form_is_the_documented_one(directory: Path) -> None:
    files = [("prompts/deep/er/tone.md", b"Kindly."), ("prompts/system.md", b"You help.\r\n")]
    listed = ",".join(f'{{"digest":"sha256:{sha256(held).hexdigest()}","path":"{path}"}}' for path, held in files)
    prompts = "sha256:" + sha256(f'{{"files":[{listed}],"format":"writegate-files/1"}}'.encode()).hexdigest()
    found = fingerprint(directory)
    assert found.prompts.digest == prompts
    assert found.models == ("model-a@1", "model-b")
    whole = (
        '{"closed":true,"format":"writegate-agent/1","kind":"agent","models":["model-a@1","model-b"],'
        '"pin":{"harness":{"name":"gym-harness","version":"2.1"},"prompt_digest":"' + prompts + '",'
        '"tool_manifest_digest":"' + found.tools.digest + '"},"subject":"hr-agent"}'
    )
    assert found.digest == "sha256:" + sha256(whole.encode()).hexdigest()


def test_times_modes_and_the_order_of_making_do_not_count(directory: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin"
    (twin / "prompts" / "deep" / "er").mkdir(parents=True)
    for path in ("tools.json", "prompts/deep/er/tone.md", "prompts/system.md"):
        (twin / path).write_bytes((directory / path).read_bytes())
        os.utime(twin / path, (1, 1))
        (twin / path).chmod(0o600)
    (twin / "writegate.toml").write_text(SETTINGS.replace('"model-b", "model-a@1", "model-b"', '"model-a@1", "model-b"'))
    (twin / "README.md").write_text("not named, so it does not count")
    assert fingerprint(twin) == fingerprint(directory)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: (d / "prompts" / "system.md").write_bytes(b"You help.\n"),
        lambda d: (d / "prompts" / "system.md").rename(d / "prompts" / "System.md"),
        lambda d: (d / "prompts" / ".hidden").write_bytes(b""),
        lambda d: (d / "tools.json").write_bytes(b'{"tools":[]}'),
        lambda d: (d / "mcp.json").write_bytes(b"{}"),
        lambda d: (d / "writegate.toml").write_text(SETTINGS.replace("2.1", "2.2")),
        lambda d: (d / "writegate.toml").write_text(SETTINGS.replace("model-a@1", "model-a@2")),
        lambda d: (d / "writegate.toml").write_text(SETTINGS + "closed = false\n"),
    ],
)
def test_any_change_changes_the_fingerprint(directory: Path, change) -> None:
    before = fingerprint(directory).digest
    change(directory)
    assert fingerprint(directory).digest != before


def test_two_files_cannot_be_taken_for_one(directory: Path) -> None:
    before = fingerprint(directory).prompts
    for path, content in (("system.md", b"Kindly."), ("deep/er/tone.md", b"You help.\r\n")):
        (directory / "prompts" / path).write_bytes(content)
    assert fingerprint(directory).prompts != before


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("prompts/**", 2),
        ("prompts/*.md", 1),
        ("**/*.md", 2),
        ("prompts/**/*.md", 2),
        ("prompts/**/tone.md", 1),
        ("prompts/deep/*/t?ne.md", 1),
        ("prompts/system.md", 1),
        ("**", 4),
    ],
)
def test_patterns_name_files_by_the_parts_of_their_paths(directory: Path, pattern: str, found: int) -> None:
    assert len(fingerprint(directory, prompts=[pattern]).prompts.files) == found


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("prompts", "write `prompts/\\*\\*`"),
        ("prompts/*.txt", "matches no file"),
        ("nothing/**", "matches no file"),
        ("/etc/passwd", "no pattern"),
        ("../x", "no pattern"),
        ("prompts/../../x", "no pattern"),
        ("", "no pattern"),
        ("a\\b", "no pattern"),
    ],
)
def test_a_pattern_that_names_nothing_of_the_agent_is_refused(directory: Path, pattern: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        fingerprint(directory, prompts=["prompts/**", pattern])


def test_links_may_not_leave_the_directory(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    inside = directory / "prompts" / "again.md"
    inside.symlink_to("system.md")
    assert len(fingerprint(directory).prompts.files) == 3
    inside.unlink()
    for target in ("../../secret.md", str(tmp_path / "secret.md"), "nowhere.md", "again.md"):
        inside.symlink_to(target)
        with pytest.raises(Refused):
            fingerprint(directory)
        inside.unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "more.md").write_text("more")
    linked = directory / "prompts" / "linked"
    linked.symlink_to(tmp_path / "elsewhere")
    for pattern in ("prompts/**", "prompts/linked/*.md", "prompts/linked/more.md"):
        with pytest.raises(Refused):
            fingerprint(directory, prompts=[pattern])
    assert fingerprint(directory, prompts=["prompts/*.md"]).prompts.files


def test_what_is_no_file_or_empty_is_refused(directory: Path) -> None:
    os.mkfifo(directory / "prompts" / "pipe")
    with pytest.raises(Refused, match="no file"):
        fingerprint(directory)
    (directory / "prompts" / "pipe").unlink()
    for path in ("system.md", "deep/er/tone.md"):
        (directory / "prompts" / path).write_bytes(b"")
    with pytest.raises(Refused, match="empty"):
        fingerprint(directory)
    (directory / "tools.json").unlink()
    (directory / "prompts" / "system.md").write_bytes(b"x")
    with pytest.raises(Refused, match=r"neither tools\.json nor mcp\.json"):
        fingerprint(directory)


def test_sizes_are_limited(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MAX_FILES", "MAX_SEEN", "MAX_FILE_BYTES", "MAX_TOTAL_BYTES", "MAX_SETTINGS_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, 1)
            with pytest.raises(Refused):
                fingerprint(directory)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "has no \\[agent\\]"),
        ("[agent", "no TOML"),
        ("[agent]\nkey = 1", "agent.key"),
        (SETTINGS.replace("hr-agent", "hr-аgent"), "U\\+0430 CYRILLIC"),
        (SETTINGS.replace("model-a@1", "mоdel"), "U\\+043E CYRILLIC"),
        (SETTINGS.replace("harness_version", "harness_verison"), "did you mean `harness_version`"),
        (SETTINGS.replace('harness_version = "2.1"', ""), "harness_version` is missing"),
        (SETTINGS.replace('["model-b", "model-a@1", "model-b"]', "[]"), "every model"),
        (SETTINGS.replace('["model-b", "model-a@1", "model-b"]', '"model-b"'), "list of texts"),
        (SETTINGS + 'closed = "no"\n', "true or false"),
        (SETTINGS + "[more]\nx = 1\n", "`more` is unknown"),
        (SETTINGS.replace("HR agent", "HR\\nagent"), "one line"),
    ],
)
def test_settings_that_are_not_whole_are_refused(tmp_path: Path, settings: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        fingerprint(agent(tmp_path / "agent", settings))


def test_the_command_prints_it_for_people_and_for_programs(directory: Path) -> None:
    code, out, err = run("fingerprint", directory)
    assert (code, err) == (0, "")
    assert fingerprint(directory).digest in out
    code, out, _ = run("fingerprint", directory, "--json", "--prompt", "prompts/*.md")
    assert code == 0
    shown = json.loads(out)
    assert [one["path"] for one in shown["files"]["prompts"]] == ["prompts/system.md"]
    assert shown["prompt_digest"] == fingerprint(directory, prompts=["prompts/*.md"]).prompts.digest
    for wrong in (directory / "nothing", directory / "tools.json", directory / "prompts"):
        code, out, err = run("fingerprint", wrong)
        assert (code, out) == (2, "")
        assert err.startswith("refused: ")
