"""Where in a policy text its parts stand, for findings about a policy that compiles."""

from policies.language.document import Node, read_document
from policies.language.noting import Place, child, entries, items, text_of


class Places:
    """Lines and columns (from 1) of the parts of one accepted text. A part that is not there gives the place of what would hold it."""

    def __init__(self, text: bytes) -> None:
        root, _ = read_document(text)
        self.root = root if root is not None else Node({}, 1, 1)
        self.spec = child(self.root, "spec")
        self._rules = self._named("rules", "id")
        self._guardrails = self._named("forbid", "id")
        self._tests = self._named("tests", "name")
        self._sign_offs = child(self.spec, "sign_offs")
        self._factors = {text_of(child(item, "factor")) or "": item for item in items(child(self._sign_offs, "all_of"))}

    def section(self, name: str) -> Place:
        """Of a key of `spec`."""
        return self._key(self.spec, name, self._key(self.root, "spec", (1, 1)))

    def rule(self, id_: str) -> Place:
        return self._at(self._rules.get(id_), self.section("rules"))

    def bar(self, id_: str, number: int) -> Place:
        """Of the bar of a rule's comparison, counted from 0 in the order of the text."""
        comparisons = list(_comparisons(self._rules.get(id_)))
        if number >= len(comparisons):
            return self.rule(id_)
        found = comparisons[number]
        return found.keys.get("at_least") or found.keys.get("at_most") or self.rule(id_)

    def clause(self, name: str, *keys: str) -> Place:
        """Of the first of the keys that a clause states, else of its name."""
        evidence = child(self.spec, "evidence")
        fallback = self._key(evidence, name, self.section("evidence"))
        stated = child(evidence, name)
        return next((stated.keys[key] for key in keys if stated is not None and key in stated.keys), fallback)

    def when(self) -> Place:
        return self._key(child(self.spec, "appliesTo"), "when", self.section("appliesTo"))

    def guardrail(self, id_: str) -> Place:
        return self._key(self._guardrails.get(id_), "when", self.section("forbid"))

    def test(self, name: str) -> Place:
        return self._at(self._tests.get(name), self.section("tests"))

    def factor(self, name: str) -> Place:
        return self._at(self._factors.get(name), self.section("sign_offs"))

    def filter(self, name: str) -> Place:
        return self._key(self._factors.get(name), "filter", self.factor(name))

    def _named(self, section: str, key: str) -> dict[str, Node]:
        return {text_of(child(item, key)) or "": item for item in items(child(self.spec, section))}

    def _at(self, node: Node | None, fallback: Place) -> Place:
        return fallback if node is None else (node.line, node.column)

    def _key(self, node: Node | None, key: str, fallback: Place) -> Place:
        return fallback if node is None else node.keys.get(key, fallback)


def _comparisons(node: Node | None) -> list[Node]:
    """Return the comparisons of a rule in the order in which `compiled.assertions_of` lists them."""
    held = entries(node)
    if node is not None and "evidence" in held:
        return [node]
    branches = [*items(held.get("any_of")), *items(held.get("all_of"))]
    return [found for branch in branches for found in _comparisons(branch)]
