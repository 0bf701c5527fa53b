"""What a policy's tests said, for people and for CI services; and the mutation score behind it."""

from decimal import Decimal
from xml.etree import ElementTree as ET

import pytest

from evaluations.kernel.errors import Problem
from policies.language.lint_mutants import score_mutants
from policies.language.lint_places import Places
from policies.language.reports import Ran, Told, below, junit, place_of, render_tests
from policies.language.testing import run_tests
from tests.policies.language.faults import HARMLESS, REFUSES, TESTS, built, lines, with_tests

HOSTILE = '{name: "red \\e[31m & <b>", facts: {refusal: {value: 9}}, expect: {outcome: pass}}'


def ran(policy, **more) -> Ran:
    told = tuple(Told(report, "p.yaml", Places(policy.text).test(report.name)[0]) for report in run_tests(policy))
    return Ran("p.yaml", policy.name, told, text=policy.text, **more)


class TestText:
    def test_it_reads_as_pytest_would(self):
        policy = built(more=with_tests("{name: good, expect: {outcome: fail}}", "{name: bad, expect: {outcome: pass}}"))
        told = render_tests([ran(policy)], seconds=0.125).splitlines()
        line = Places(policy.text).test("bad")[0]
        assert told[0].split() == ["p.yaml::good", "PASSED", "[", "50%]"]
        assert told[1].split() == ["p.yaml::bad", "FAILED", "[100%]"]
        assert told[3].strip("=") == " FAILURES "
        assert told[4].strip("_") == " bad "
        assert told[5] == f"p.yaml:{line}: the outcome is `fail`, not `pass`"
        assert told[-3] == "FAILED p.yaml::bad - the outcome is `fail`, not `pass`"
        assert told[-1].strip("=") == " 1 failed, 1 passed in 0.12s "

    def test_what_cannot_be_read_is_an_error(self):
        told = render_tests([Ran("q.yaml", problems=(Problem("is wrong", "q.yaml", 3, 1), Problem("too", "q.yaml", 4, 1)))])
        assert "q.yaml, line 3, column 1: is wrong" in told
        assert "ERROR q.yaml - is wrong" in told
        assert told.rstrip("=").endswith(" 1 error ")

    def test_a_policy_without_tests_says_so(self):
        told = render_tests([ran(built(more=""))])
        assert told.startswith("p.yaml: the policy `made-up` has no tests")
        assert told.strip("=").endswith(" 0 passed ")

    def test_names_cannot_write_to_the_terminal_or_break_the_xml(self):
        files = [ran(built(more=with_tests(HOSTILE)))._replace(file="p\x1b.yaml"), Ran("q.yaml", problems=(Problem("x"),))]
        told = render_tests(files)
        assert "\x1b" not in told
        assert "FAILED p.yaml::red" in told
        written = junit(files).decode()
        assert "\x1b" not in written
        assert 'tests="1" failures="1" errors="0"' in written
        assert 'tests="1" failures="0" errors="1"' in written
        assert "&lt;b&gt;" in written


class TestScore:
    def test_tests_on_both_sides_of_each_bar_notice_everything(self):
        score = score_mutants(built())
        assert (score.noticed, score.total, score.percent, score.survivors) == (10, 10, Decimal(100), ())
        assert {mutant.what for mutant in score.mutants if mutant.rule == "refuses"} == {
            "the rule dropped", "at most 80", "at least 79", "at least 81",
        }  # fmt: skip
        assert [mutant.what for mutant in score.mutants if mutant.clause and not mutant.rule] == [
            "judged by its rate instead of its lower_bound",
            "judged by its rate instead of its upper_bound",
        ]

    @pytest.mark.parametrize("left_out", ["both clear", "too little refused", "too much harm", "luck", "luck with harm"])
    def test_each_test_is_needed(self, left_out):
        policy = built(more="\n".join(line for line in TESTS.splitlines() if f"name: {left_out}," not in line))
        score = score_mutants(policy)
        assert score.percent < 100
        assert below([ran(policy, score=score)], Decimal(100))
        assert not below([ran(policy, score=score)], score.percent)

    def test_without_tests_everything_survives(self):
        score = score_mutants(built(more=""))
        assert (score.noticed, len(score.survivors), score.percent) == (0, score.total, Decimal(0))

    def test_survivors_are_named_with_their_place(self):
        policy = built(more="", rules=lines(REFUSES, HARMLESS))
        score = score_mutants(policy)
        told = render_tests([ran(policy, score=score)], min_score=Decimal(50))
        text = policy.text.decode().splitlines()
        for mutant in score.survivors:
            line, column = place_of(mutant, Places(policy.text))
            assert f"SURVIVED p.yaml:{line}:{column}: " in told
            wanted = {"refuses": "at_least: 80", "harmless": "at_most: 5"}.get(mutant.rule, mutant.clause)
            assert mutant.number is None or text[line - 1][column - 1 :].startswith(wanted)
        assert "0.0 %: 0 of 10 changes are noticed by a test, fewer than the 50 % asked for" in told
        (suite,) = ET.fromstring(junit([ran(policy, score=score)]))
        assert suite.get("failures") == "10"

    def test_what_was_not_tried_counts_as_unnoticed(self):
        score = score_mutants(built(), most_judged=3)
        assert score.unfinished
        assert score.percent < 100

    def test_a_share_is_never_rounded_up_to_all(self):
        score = score_mutants(built())
        most = score._replace(mutants=(*(score.mutants * 300), score.mutants[0]._replace(noticed=False)))
        assert str(most.percent) == "99.9"
