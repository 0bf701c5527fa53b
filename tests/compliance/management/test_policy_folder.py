"""`manage.py policy pull` and `push`: policies to a folder and back, byte for byte, all of it or nothing."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from compliance.management.policy_kinds.folder import MANIFEST, file_name, policy_of, texts_in
from compliance.models import LedgerEntry, User
from compliance.vocabulary import Role
from evaluations.kernel.canonical import digest_of
from evaluations.kernel.errors import InputRefused
from policies.models import PolicyVersion
from tests.support import signing, world

ODD = b"# trailing spaces   \r\n"


def policy(*arguments: object) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("policy", *map(str, arguments), stdout=out, stderr=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def text_of(name: str, bar: object = 80) -> bytes:
    return world.ONE_RULE.format(name=name, bar=bar).encode()


@pytest.fixture
def author(db: None) -> User:
    world.register("m")
    return signing.human("Ada Author", Role.POLICY_AUTHOR)


@pytest.fixture
def folder(author: User, tmp_path: Path) -> Path:
    """A folder into which two policies in force were pulled; a third one is not in force."""
    for name in ("first", "second"):
        world.activate(world.propose_text(text_of(name) + ODD))
    world.propose_text(text_of("third"))
    code, told = policy("pull", tmp_path / "policies")
    assert (code, told.splitlines()[-1]) == (0, "2 policies, 2 files written")
    return tmp_path / "policies"


def change(folder: Path, name: str, bar: object) -> bytes:
    text = text_of(name, bar) + ODD
    (folder / f"{name}.yaml").write_bytes(text)
    return text


def test_what_is_pulled_is_the_very_bytes_and_goes_back_as_nothing_new(folder: Path, author: User) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["first.yaml", MANIFEST, "second.yaml"]
    assert (folder / "first.yaml").read_bytes() == text_of("first") + ODD
    manifest = json.loads((folder / MANIFEST).read_bytes())
    assert manifest["policies"]["first"] == {
        "digest": digest_of(text_of("first") + ODD),
        "file": "first.yaml",
        "version": 1,
    }
    before = {path: path.read_bytes() for path in folder.iterdir()}
    versions, entries = PolicyVersion.objects.count(), LedgerEntry.objects.count()
    assert policy("push", folder, "--author", author.email) == (0, "2 policies, 0 new versions\n")
    assert policy("pull", folder)[1] == "2 policies, 0 files written\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert (PolicyVersion.objects.count(), LedgerEntry.objects.count()) == (versions, entries)
    one = policy("pull", folder.with_name("one"), "--version", "first@1")[1]
    assert one.splitlines()[-1] == "1 policy, 1 file written"


def test_a_change_is_proposed_by_its_author_and_pulled_again_byte_for_byte(folder: Path, author: User, tmp_path: Path) -> None:
    text = change(folder, "first", 85)
    code, told = policy("push", folder, "--dry-run")
    assert (code, told.splitlines()) == (0, ["first: changed since v1", "second: unchanged (v1)", "Nothing was changed."])
    assert PolicyVersion.objects.filter(policy__name="first").count() == 1
    assert policy("push", folder, "--author", author.email) == (0, "first: proposed as v2\n2 policies, 1 new version\n")
    version = PolicyVersion.objects.get(policy__name="first", number=2)
    assert (bytes(version.text), version.proposed_by) == (text, f"person:{author.person_id}")
    assert policy("push", folder, "--author", author.email)[1].endswith("0 new versions\n")
    # The next change is written from what was just proposed.
    change(folder, "first", 86)
    assert policy("push", folder, "--author", author.email)[1].startswith("first: proposed as v3\n")
    assert policy("pull", tmp_path / "again", "--version", "first@2")[0] == 0
    assert (tmp_path / "again" / "first.yaml").read_bytes() == text
    assert policy("pull", tmp_path / "all", "--all")[0] == 0
    assert [path.name for path in texts_in(tmp_path / "all")] == ["first.yaml", "second.yaml", "third.yaml"]
    assert (tmp_path / "all" / "first.yaml").read_bytes() == text_of("first") + ODD, "the one in force, not the newest"


def test_all_problems_of_all_files_are_told_and_nothing_is_proposed(folder: Path, author: User) -> None:
    change(folder, "first", 85)
    change(folder, "second", '">= 80"')
    (folder / "fourth.yaml").write_bytes(b"a: 1\na: 2\n")
    (folder / "fifth.yaml").write_bytes(text_of("sixth"))
    (folder / "Not A Name.yaml").write_bytes(text_of("seventh"))
    for more in (("--dry-run",), ("--author", author.email)):
        code, told = policy("push", folder, *more)
        assert code == 2
        for part in ("second.yaml, line ", "fourth.yaml, line 2", "fifth.yaml: the text names", "Not A Name.yaml: is not called"):
            assert part in told, (part, told)
    assert PolicyVersion.objects.filter(policy__name="first").count() == 1
    assert json.loads((folder / MANIFEST).read_bytes())["policies"]["first"]["version"] == 1


def test_a_text_whose_base_is_no_longer_the_newest_is_refused_unless_told(folder: Path, author: User) -> None:
    change(folder, "first", 85)
    world.propose_text(text_of("first", 90))
    (folder / "third.yaml").write_bytes(text_of("third", 81))
    code, told = policy("push", folder, "--author", author.email)
    assert code == 2
    assert "the newest version of `first` is v2, and it was written from v1" in told
    assert "the newest version of `third` is v1, and it was not pulled" in told
    assert PolicyVersion.objects.filter(policy__name="first").count() == 2
    code, told = policy("push", folder, "--author", author.email, "--over-newer")
    assert (code, told.splitlines()[:2]) == (0, ["first: proposed as v3", "third: proposed as v2"])


def test_local_changes_are_written_over_by_force_alone(folder: Path) -> None:
    world.activate(world.propose_text(text_of("first", 81)))
    world.activate(world.propose_text(text_of("second", 81)))
    mine = change(folder, "first", 99)
    manifest = (folder / MANIFEST).read_bytes()
    code, told = policy("pull", folder)
    assert (code, "first.yaml: was changed here since it was pulled" in told) == (2, True)
    assert (folder / "first.yaml").read_bytes() == mine
    assert (folder / "second.yaml").read_bytes() == text_of("second") + ODD, "nothing half done"
    assert (folder / MANIFEST).read_bytes() == manifest
    assert policy("pull", folder, "--force")[0] == 0
    assert (folder / "first.yaml").read_bytes() == text_of("first", 81)
    assert (folder / "second.yaml").read_bytes() == text_of("second", 81)


def test_a_file_that_is_none_and_a_manifest_that_is_none_are_refused(folder: Path, author: User, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_bytes(b"x")
    (folder / "first.yaml").unlink()
    (folder / "first.yaml").symlink_to(elsewhere)
    code, told = policy("pull", folder, "--force")
    assert (code, "first.yaml: is no plain file" in told, elsewhere.read_bytes()) == (2, True, b"x")
    (folder / MANIFEST).write_text('{"format": "other"}')
    for kind, more in (("pull", ()), ("push", ("--dry-run",))):
        code, told = policy(kind, folder, *more)
        assert (code, "is no manifest of policies" in told) == (2, True)
    assert policy("push", tmp_path / "nowhere", "--dry-run")[0] == 2


def test_whoever_wrote_it_is_named(folder: Path, author: User) -> None:
    change(folder, "first", 85)
    code, told = policy("push", folder)
    assert (code, "say who wrote the texts" in told) == (2, True)
    assert policy("push", folder, "--author", "nobody@example.org")[0] == 2
    for asked in ("first", "first@9", "nothing@1", "first@x"):
        assert policy("pull", folder, "--version", asked)[0] == 2
    assert policy("pull", folder, "--version", "first@1", "--version", "first@2")[0] == 2


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("hr-writes", "hr-writes.yaml"),
        ("hr/writes", "hr%2Fwrites.yaml"),
        ("a/b/c", "a%2Fb%2Fc.yaml"),
        ("a:b", "a%3Ab.yaml"),
        ("a@b+c.d", "a@b+c.d.yaml"),
    ],
)
def test_a_policys_file_lies_in_the_folder_and_names_it_again(name: str, file: str) -> None:
    assert file_name(name) == file
    assert policy_of(Path("x") / file) == name


@pytest.mark.parametrize("file", ["A.yaml", "a%2fb.yaml", "a%2F..%2Fb.yaml", ".yaml", "%2e%2e.yaml", "a b.yaml", "a%00b.yaml"])
def test_another_file_name_names_no_policy(file: str) -> None:
    with pytest.raises(InputRefused):
        policy_of(Path(file))
