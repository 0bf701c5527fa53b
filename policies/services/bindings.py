"""Bindings: signed tightenings. Written only in the transaction in which a request's signatures become complete."""

from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from evaluations.kernel import audit
from evaluations.kernel.actor import Actor
from evaluations.kernel.canonical import canonical_bytes, digest_of
from evaluations.kernel.errors import InputRefused, Problem
from evaluations.kernel.numbers import NotADecimal, parse_decimal
from evaluations.vocabulary import Domain
from policies.models import Binding, Policy, System
from policies.selectors.bindings import numbers_of
from policies.selectors.policies import compile_version, version_to_judge
from policies.services.activations import apply_announce_change


def check_binding(
    *, policy: Policy, params: Mapping[str, Decimal], system: System | None = None, domain: str = ""
) -> dict[str, Decimal]:
    """Return the numbers of a binding as they would be kept. Writes nothing: whoever asks for signatures asks this first.

    They are held against the version in force, else the newest: a floor may only go up, a ceiling only down, and a number equal to
    the policy's lifts an earlier binding. Raises `InputRefused` for the shape, `LooserParameter` for the numbers.
    """
    problems = []
    if (system is None) == (not domain):
        problems.append(Problem("a binding is for a system or for a domain", field="system", hint="give one of the two"))
    if domain and domain not in Domain.values:
        problems.append(Problem(f"`{domain}` is not known", field="domain", hint=f"one of {', '.join(Domain.values)}"))
    if not params:
        hint = "name at least one; to lift an earlier binding, give the policy's own number"
        problems.append(Problem("a binding without parameters tightens nothing", field="params", hint=hint))
    numbers: dict[str, Decimal] = {}
    for name, number in params.items():
        try:
            numbers[name] = parse_decimal(number, field=name)
        except NotADecimal as error:
            problems.append(Problem(str(error), field="params"))
    if problems:
        raise InputRefused(problems)
    compile_version(version_to_judge(policy)).effective_params(numbers)
    return numbers


def apply_bind(
    *,
    actor: Actor,
    policy: Policy,
    params: Mapping[str, Decimal],
    sign_off_request: UUID,
    system: System | None = None,
    domain: str = "",
    request_id: str = "",
) -> Binding:
    """Record a binding inside an open service transaction; what stands is judged anew after commit.

    It replaces the earlier one of its place whole: a parameter that it does not name is the policy's own again. Raises what
    `check_binding` raises.
    """
    # The row lock orders bindings of one policy, and holds the version in force that they are checked against.
    policy = Policy.objects.select_for_update().get(pk=policy.pk)
    numbers = check_binding(policy=policy, params=params, system=system, domain=domain)
    before = Binding.objects.filter(policy=policy, system=system, domain=domain).order_by("-id").first()
    content = canonical_bytes(numbers)
    binding = Binding(
        policy=policy,
        system=system,
        domain=domain,
        params=content,
        digest=digest_of(content),
        bound_by=actor.reference,
        sign_off_request=sign_off_request,
    )
    binding.save()
    apply_announce_change(actor=actor, policy=policy)
    audit.record(
        audit.Event(
            action="binding.recorded",
            actor=actor,
            target=("binding", str(sign_off_request)),
            old=None if before is None else {"binding": str(before.sign_off_request), "params": numbers_of(before)},
            new={
                "policy": policy.name,
                "system": None if system is None else system.key,
                "domain": domain or None,
                "params": numbers,
            },
            digests={"params": binding.digest},
            request_id=request_id,
        )
    )
    return binding
