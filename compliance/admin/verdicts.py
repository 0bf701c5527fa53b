"""The page of a verdict, with a button that judges it once more, and what was found when that was done."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse

from compliance.admin.rights import actor_of
from compliance.services.replays import replay_verdicts
from evaluations.kernel.display import Custom, Record, instant
from policies.admin.verdicts import VerdictAdmin
from policies.models import Verdict, VerdictMismatch
from policies.vocabulary import Differing, VerdictReplay

_SAID = {
    VerdictReplay.SAME: "From the stored facts document and policy text, as of then, it comes out the same, byte for byte.",
    VerdictReplay.PRUNED: "What it was judged on is kept no more, so nothing can be judged. Its entry in the log stands.",
    VerdictReplay.UNKNOWN_SEMANTICS: "It was made under a meaning that this version of the gate does not hold.",
}


class ReplayedVerdictAdmin(VerdictAdmin):
    """The page of a verdict, with its replay."""

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("mismatch")

    def describe(self, row: Verdict, request: HttpRequest) -> Record:
        record = super().describe(row, request)
        found: VerdictMismatch | None = getattr(row, "mismatch", None)
        data: dict[str, Any] = {"address": reverse("admin:policies_verdict_replay", args=[row.pk]), "found": found}
        if found is not None:
            data["differs"] = [f"{Differing(word).label}." for word in found.differs]
            data["at"] = instant(found.recorded_at)
        section = Custom("Judged once more", "writegate/sections/replay.html", data)
        return Record(
            lead=record.lead,
            mark=record.mark,
            sections=[section, *record.sections] if found is not None else [*record.sections, section],
            target=record.target,
            downloads=record.downloads,
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.replay_view)
        return [path("<int:pk>/replay/", view, name="policies_verdict_replay"), *super().get_urls()]

    def replay_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Judge the verdict once more, and say on its page what came of it."""
        verdict = self._found(request, pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        (done,) = replay_verdicts(actor=actor_of(request), verdicts=[verdict])
        outcome = done.replay.outcome
        if outcome == VerdictReplay.MISMATCHED:
            differs = "; ".join(word.label for word in done.replay.differs)
            messages.error(request, f"It does not match: {differs}. What stands on it denies until it is judged anew.")
        elif outcome == VerdictReplay.SAME:
            messages.success(request, _SAID[outcome])
        else:
            messages.warning(request, _SAID[outcome])
        answer: HttpResponse = redirect("admin:policies_verdict_change", verdict.pk)
        return answer


# Sections that other pages add to a verdict's page stand on this one too.
ReplayedVerdictAdmin.further = VerdictAdmin.further
admin.site.unregister(Verdict)
admin.site.register(Verdict, ReplayedVerdictAdmin)
