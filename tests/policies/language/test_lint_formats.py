"""Findings as people and tools read them, and the file that says what is known away from the service."""

import json

import pytest

from evaluations.kernel.errors import InputRefused
from policies.language.compiler import PolicyRefused, compile_policy
from policies.language.lint import MEANINGS, Code, lint
from policies.language.lint_formats import Linted, blocks, render_lint
from policies.language.lint_known import read_known
from tests.policies.language.building import NAMES, policy_text
from tests.policies.language.faults import KNOWN, REFUSES, built, refusal

NAN = '"NaN"'


def refused() -> Linted:
    with pytest.raises(PolicyRefused) as error:
        compile_policy(policy_text("    - {id: r, evidence: refusal, at_most: 80}"), NAMES, filename="p.yaml")
    return Linted("p.yaml", problems=tuple(error.value.problems))


class TestFormats:
    @pytest.fixture
    def files(self) -> list[Linted]:
        policy = built(evidence=refusal(), rules=REFUSES, more="")
        return [Linted("a b/p,1.yaml", policy.name, policy.digest, lint(policy, KNOWN)), refused()]

    def test_text(self, files):
        told = render_lint(files, "text").splitlines()
        assert told[0].startswith("a b/p,1.yaml:8:3: blocks: ")
        assert told[0].endswith("[refusal-only]")
        assert any(line.startswith("p.yaml:") and ": error: " in line for line in told)
        assert told[-1] == "2 policies: 1 blocking, 1 warnings, 1 not compiled"

    def test_json(self, files):
        told = json.loads(render_lint(files, "json"))
        assert (told["blocking"], told["warnings"], told["refused"]) == (1, 1, 1)
        assert told["files"][0]["findings"][0]["code"] == "refusal-only"
        assert (told["files"][1]["policy"], told["files"][1]["problems"][0]["code"]) == (None, "polarity")

    def test_sarif(self, files):
        (run,) = json.loads(render_lint(files, "sarif"))["runs"]
        ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert ids[: len(MEANINGS)] == [code.value for code in Code]
        for result in run["results"]:
            assert ids[result["ruleIndex"]] == result["ruleId"]
            (location,) = result["locations"]
            assert location["physicalLocation"]["artifactLocation"]["uri"] in {"a%20b/p%2C1.yaml", "p.yaml"}
            assert location["physicalLocation"]["region"]["startLine"] >= 1
        assert {result["level"] for result in run["results"]} == {"error", "warning"}

    def test_github(self, files):
        told = render_lint(files, "github").splitlines()
        assert told[0].startswith("::error file=a b/p%2C1.yaml,line=8,col=3,title=refusal-only::with perfect refusal")
        assert [line.partition(" ")[0] for line in told] == ["::error", "::warning", "::error"]

    def test_nothing_found(self):
        clean = [Linted("p.yaml", "p", "sha256:1")]
        assert render_lint(clean, "text") == "1 policy: 0 blocking, 0 warnings, 0 not compiled"
        assert render_lint(clean, "github") == ""
        assert not blocks(clean)


class TestKnown:
    METRIC = (
        '{"key": "m", "unit": "percent", "better": "lower", "level": "outcome", "family": "harm", "minimum": "0", "maximum": 100}'
    )

    def text(self, **parts: str) -> bytes:
        held = {"metrics": f"[{self.METRIC}]", "benchmarks": '{"b": ["1"]}', "roles": '["security"]', **parts}
        return ("{" + ", ".join(f'"{key}": {value}' for key, value in held.items() if value) + "}").encode()

    def test_a_whole_file(self):
        names, known = read_known(self.text(values='{"resource.domain": ["hr"]}', trust='{"lab": "vendor"}'))
        assert (names.metrics["m"].family, str(names.metrics["m"].maximum)) == ("harm", "100")
        assert (names.benchmarks, names.roles, names.sources) == ({"b": {"1"}}, {"security"}, {"lab"})
        assert (known.values, known.trust) == ({"resource.domain": {"hr"}}, {"lab": "vendor"})
        assert read_known(self.text())[0].sources is None

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (b"{", "this is not JSON"),
            (b"\xff", "this is not JSON"),
            (b"[" * 100_000, "this is not JSON"),
            (b"[]", "no JSON object"),
            (b"{}", "`metrics` is missing"),
            ({"roles": ""}, "`roles` is missing"),
            ({"role": "[]"}, "unknown key `role`"),
            ({"metrics": "{}"}, "`metrics` is no list"),
            ({"metrics": "[1]"}, "`metrics[0]` is no object"),
            ({"metrics": '[{"key": "m", "unit": "yen"}]'}, "`metrics[0].unit`"),
            ({"metrics": f"[{METRIC.replace('100', NAN)}]"}, "metrics[0].maximum"),
            ({"benchmarks": '{"b": "1"}'}, "`benchmarks.b` is no list"),
            ({"values": '{"resource.reversible": ["x"]}'}, "`values.resource.reversible`"),
            ({"values": '{"resource.domain": []}'}, "`values.resource.domain`"),
            ({"trust": '{"lab": "best"}'}, "`trust.lab`"),
            ({"trust": '{"lab": []}'}, "`trust.lab`"),
        ],
    )
    def test_what_is_wrong_is_said(self, text, told):
        with pytest.raises(InputRefused) as error:
            read_known(text if isinstance(text, bytes) else self.text(**text), filename="k.json")
        assert told in str(error.value)
        assert "k.json" in str(error.value)
