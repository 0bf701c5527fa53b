"""The published vocabulary: every code has its meaning and its remedy, in whole sentences."""

import pytest

from compliance.deciding.codes import Code
from compliance.deciding.meanings import MEANINGS


def test_every_code_has_one_and_in_their_order() -> None:
    assert list(MEANINGS) == list(Code)


@pytest.mark.parametrize("code", list(Code))
def test_it_is_told_in_sentences(code: Code) -> None:
    for text in MEANINGS[code]:
        assert text[0].isupper()
        assert text.endswith(".")
        assert text.count("`") % 2 == 0
