"""Inventories of made-up gateways, and the models behind them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compliance.models import Grant
from compliance.services.routing import Imported, import_routes
from evaluations.models import SubjectVersion
from evaluations.services.subjects import assign_alias
from tests.support import signing, world


def gateway(groups: Mapping[str, str | Sequence[str]], **router: Any) -> bytes:
    """Return a gateway's file: by name the model or models behind it, and what stands in `router_settings`."""
    listed = {name: [models] if isinstance(models, str) else models for name, models in groups.items()}
    deployments = [
        {"model_name": name, "litellm_params": {"model": model, "api_key": "sk-made-up"}}
        for name, models in listed.items()
        for model in models
    ]
    return json.dumps({"model_list": deployments, "router_settings": router}).encode()


def hand_in(body: bytes, **more: Any) -> Imported:
    return import_routes(actor=world.ACTOR, body=body, **more)


def models(*letters: str) -> dict[str, SubjectVersion]:
    """Register models and say that `lab/LETTER` in any gateway means them; `a` is the ground's own."""
    found = {}
    for letter in letters:
        (version,) = world.register(f"model-{letter}")
        assign_alias(actor=world.ACTOR, name_as_written=f"lab/{letter}", subject_version=version)
        found[letter] = version
    return found


def grant_for(land: signing.Ground, version: SubjectVersion) -> Grant:
    """Have a model judged and granted on the ground's system as the ground's own would be."""
    if version != land.version:
        world.submit(world.submission(version.subject.key, world.observation("91")), f"{version.subject.key}.json")
    world.judge_all()
    return signing.granted(land._replace(version=version))
