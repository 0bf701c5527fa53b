"""The closed lists: one word per thing, on every floor."""

import evaluations.vocabulary as evaluations_words
import policies.vocabulary as policies_words
from policies.language import results


def test_the_language_and_the_tables_use_the_same_words():
    assert tuple(evaluations_words.TrustTier.values) == results.TRUST_TIERS
    assert tuple(evaluations_words.Provenance.values) == results.PROVENANCES
    assert tuple(evaluations_words.RunStatus.values) == results.RUN_STATUSES
    assert set(evaluations_words.RulingKind.values) == {word.value for word in results.Ruling if word}
    assert set(policies_words.Result.values) == {word.value for word in results.Result}
    assert set(policies_words.Outcome.values) == {word.value for word in results.Outcome}
    assert policies_words.ANY_DOMAIN == results.ANY_DOMAIN


def test_a_word_has_one_meaning_in_one_list():
    words = [word.value for word in results.Reason]
    assert len(words) == len(set(words))
    assert set(results.IDENTITY_REASONS) | results.ERROR_REASONS <= set(words)
    assert set(results.BADNESS) == {word.value for word in results.Result}
