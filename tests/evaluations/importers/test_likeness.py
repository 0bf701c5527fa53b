"""Names taken apart and held beside others: what is the same, and what differs."""

import pytest

from evaluations.importers.likeness import KnownNames, letters_of, parts_of


@pytest.mark.parametrize(
    ("name", "base", "split"),
    [
        ("gpt-5", "gpt-5", {}),
        ("GPT-5 (high)", "gpt-5", {"effort": "high"}),
        ("openrouter/anthropic/claude-4.5-20251101", "claude-4-5", {"provider": "openrouter/anthropic", "snapshot": "20251101"}),
        ("azure/gpt-4.1-mini-2025-04-14", "gpt-4-1-mini", {"provider": "azure", "snapshot": "2025-04-14"}),
        ("deepseek-v4:fp8", "deepseek-v4", {"quantisation": "fp8"}),
        ("claude-4-thinking-16k", "claude-4", {"effort": "thinking-16k"}),
        ("Fable 5 (with Opus 4.8 fallback)", "fable-5", {"fallback": "opus-4-8-fallback"}),
        ("somebody/model", "somebody-model", {}),
        ("max", "max", {}),
        ("high-high", "high", {"effort": "high"}),
    ],
)
def test_parts_are_split_off_and_named(name: str, base: str, split: dict[str, str]) -> None:
    assert parts_of(name) == (base, split)


def test_letters_ignore_case_and_what_stands_between() -> None:
    assert letters_of("GPT_4.5 (High)") == letters_of("gpt-4-5-high") == "gpt-4-5-high"


class TestLike:
    """Nearest first; never a prefix, never the name itself."""

    known = KnownNames(["claude-opus-4.5", "gpt-5", "gpt-5-high", "claude-fable-5", "gpt-4.1", "gpt-4.1-mini"])

    def found(self, name: str, **options: bool) -> list[tuple[str, str]]:
        return [(one.known, one.way) for one in self.known.like(name, **options)]

    def test_the_same_letters_come_before_the_same_without_its_effort(self) -> None:
        assert self.found("GPT-5 (high)") == [("gpt-5-high", "same_letters"), ("gpt-5", "same_but_parts")]

    def test_what_differs_is_named(self) -> None:
        one, *_ = self.known.like("openrouter/claude-opus-4.5-20251101")
        assert one.differs == (("provider", "openrouter", ""), ("snapshot", "20251101", ""))

    def test_two_efforts_differ(self) -> None:
        found = {one.known: one.differs for one in self.known.like("gpt-5-xhigh")}
        assert found["gpt-5-high"] == (("effort", "xhigh", "high"),)

    def test_a_digit_that_looks_like_a_letter_is_told_so(self) -> None:
        assert self.found("claude-fab1e-5")[0] == ("claude-fable-5", "looks_alike")

    def test_a_slip_of_the_pen_is_found_letter_by_letter_only_where_asked(self) -> None:
        assert ("gpt-4.1-mini", "close") in self.found("gpt-4.1-min")
        assert self.found("gpt-4.1-min", close=False) == []

    def test_a_beginning_is_no_likeness(self) -> None:
        assert self.found("gpt-4", close=False) == []

    def test_a_known_name_is_not_like_itself(self) -> None:
        assert "gpt-5" not in [known for known, _ in self.found("gpt-5")]
