"""What stands in the console's side bar, in the order in which a verdict is explained."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

_GROUPS: Sequence[tuple[str, Sequence[tuple[str, str, str]]]] = (
    ("", (("Home", "admin:index", "grid_view"),)),
    (
        "Access",
        (
            ("Requests", "admin:compliance_signoffrequest_changelist", "signature"),
            ("Grants", "admin:compliance_grant_changelist", "key_vertical"),
            ("Decisions", "admin:compliance_decision_changelist", "contact_support"),
            ("Drift", "admin:compliance_grant_drift", "trending_down"),
            ("Waivers", "admin:compliance_waiver_changelist", "rule"),
            ("Stop button", "admin:compliance_grant_stop", "front_hand"),
        ),
    ),
    (
        "Verdicts",
        (
            ("Standings", "admin:policies_standing_changelist", "flag"),
            ("Verdicts", "admin:policies_verdict_changelist", "gavel"),
        ),
    ),
    (
        "Policies",
        (
            ("Policies", "admin:policies_policy_changelist", "policy"),
            ("Policy versions", "admin:policies_policyversion_changelist", "description"),
            ("Systems", "admin:policies_system_changelist", "dns"),
        ),
    ),
    (
        "Evidence",
        (
            ("Evidence in", "admin:compliance_upload_changelist", "upload_file"),
            ("Names that wait", "admin:evaluations_aliasassignment_waiting", "person_search"),
            ("Evidence", "admin:evaluations_evidence_changelist", "lab_research"),
            ("Documents", "admin:evaluations_document_changelist", "draft"),
            ("Sources", "admin:evaluations_source_changelist", "rss_feed"),
            ("Refresh runs", "admin:evaluations_refreshrun_changelist", "sync"),
            ("Benchmarks", "admin:evaluations_benchmark_changelist", "quiz"),
            ("Benchmark versions", "admin:evaluations_benchmarkversion_changelist", "bookmark"),
            ("Metrics", "admin:evaluations_metric_changelist", "straighten"),
        ),
    ),
    (
        "Subjects",
        (
            ("Subjects", "admin:evaluations_subject_changelist", "smart_toy"),
            ("Subject versions", "admin:evaluations_subjectversion_changelist", "fingerprint"),
            ("Routes", "admin:compliance_routinginventory_changelist", "alt_route"),
            ("Names as written", "admin:evaluations_aliasassignment_changelist", "label"),
        ),
    ),
    (
        "People",
        (
            ("People", "admin:compliance_person_changelist", "group"),
            ("Teams", "admin:compliance_team_changelist", "diversity_3"),
            ("Tokens", "admin:compliance_servicetoken_changelist", "key"),
        ),
    ),
    (
        "Notices",
        (
            ("Notices", "admin:compliance_outboxmessage_changelist", "outbox"),
            ("Webhooks", "admin:compliance_webhookendpoint_changelist", "webhook"),
        ),
    ),
    (
        "Trail",
        (
            ("Entries", "admin:compliance_ledgerentry_changelist", "receipt_long"),
            ("Checkpoint", "admin:compliance_ledgerentry_checkpoint", "verified"),
            ("Verify", "admin:compliance_ledgerentry_verify", "fact_check"),
            ("Exports", "admin:compliance_auditexport_changelist", "archive"),
            ("Rows and entries", "admin:compliance_ledgerentry_population", "balance"),
        ),
    ),
)


def groups(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the side bar's groups in the frame's shape. An item is lit on its own pages and on no other's."""
    addresses = {name: reverse(name) for _, items in _GROUPS for _, name, _ in items}
    # Some pages lie below the list of another: the longest address is the page's own. Home lies above all of them.
    home = addresses["admin:index"]
    above = [found for found in addresses.values() if found != home and request.path.startswith(found)]
    own = max(above, key=len, default=home if request.path == home else "")
    return [
        {
            "title": title,
            "items": [
                {"title": words, "icon": icon, "link": addresses[name], "active": addresses[name] == own}
                for words, name, icon in items
            ],
        }
        for title, items in _GROUPS
    ]


def account_links(request: HttpRequest) -> list[dict[str, Any]]:
    """Return what stands in the menu under one's own name."""
    links = [{"title": "Second factors", "link": reverse("mfa_index")}]
    if request.user.is_authenticated and request.user.has_usable_password():
        links.append({"title": "Change password", "link": reverse("admin:password_change")})
    return links
