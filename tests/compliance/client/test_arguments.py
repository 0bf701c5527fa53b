"""What the `writegate` command says of arguments that are none."""

from pathlib import Path

import pytest

from compliance.client.cli import main

CHECK = ("check", "--subject", "hr-agent", "--system", "hr-prod")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "--subjct", "hr-agent", "--system", "hr-prod"), "there is no option --subjct; did you mean --subject?"),
        (("check", "--sytem=hr-prod"), "there is no option --sytem; did you mean --system?"),
        (("bundle", "fetch", "--systm", "hr-prod"), "there is no option --systm; did you mean --system?"),
        ((*CHECK, "--zzz"), "there is no option --zzz\n"),
        ((*CHECK, "--timeout", "soon"), "`soon` is no number of seconds above 0 and up to 3600"),
        ((*CHECK, "--timeout", "0"), "`0` is no number of seconds above 0 and up to 3600"),
        ((*CHECK, "--wait", "nan"), "`nan` is no number of seconds above 0 and up to 604800"),
        ((*CHECK, "--retries", "many"), "`many` is no whole number from 0 to 10"),
        ((*CHECK, "--until", "tomorrow"), "`tomorrow` is no time: write 2026-12-31"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_what_looks_like_an_option_and_is_a_sentence_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*CHECK, "--request", "--reason", "--as agreed", "--server", "nowhere")) == 2
    assert "`nowhere` is no address" in capsys.readouterr().out


def test_an_empty_token_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "token").touch()
    assert main((*CHECK, "--server", "https://gate.example.org", "--token-file", str(tmp_path / "token"))) == 2
    assert f"no token: {tmp_path / 'token'} is empty" in capsys.readouterr().out


def test_a_key_that_is_no_file_either_says_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = ("--system", "hr-prod", "--key", str(tmp_path / "key.pub"))
    assert main(("bundle", "verify", str(tmp_path / "none"), *bundle)) == 2
    assert "key.pub` is no file, and a key is written `name+8 hex digits+base64`" in capsys.readouterr().err
