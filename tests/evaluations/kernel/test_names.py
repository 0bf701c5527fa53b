"""Keys: a small ASCII set (case O-08, registration half)."""

import pytest

from evaluations.kernel.errors import InputRefused
from evaluations.kernel.names import check_key


@pytest.mark.parametrize("key", ["claude-fable-5", "gpt-5.5-xhigh", "openai/gpt-5@2026-01", "a", "v1.0:b_c+d"])
def test_a_plain_key_is_taken(key: str) -> None:
    assert check_key(key, field="key") == key


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("cl\u0430ude-fable-5", "U+0430 CYRILLIC SMALL LETTER A at character 3"),
        ("claude\u2011fable\u20115", "U+2011 NON-BREAKING HYPHEN at character 7"),
        ("HR-PROD", "U+0048 LATIN CAPITAL LETTER H"),
        ("hr prod", "U+0020 SPACE"),
        ("hr-prod/../itsm", "no well-formed key"),
        ("-hr", "no well-formed key"),
        ("", "a key is needed"),
        ("a\n", "U+000A"),
        ("a" * 121, "longer than 120"),
        (None, "a key is needed"),
    ],
)
def test_a_look_alike_is_refused_with_its_code_point(key: object, told: str) -> None:
    with pytest.raises(InputRefused) as refusal:
        check_key(key, field="key")
    assert told in str(refusal.value)
    assert refusal.value.problems[0].field == "key"
