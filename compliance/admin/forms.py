"""The one form of the console: one's own password."""

from typing import Any

from unfold.forms import AdminOwnPasswordChangeForm

from compliance.services.accounts import set_password
from evaluations.kernel.actor import person


class OwnPasswordForm(AdminOwnPasswordChangeForm):  # type: ignore[misc]
    """Django's own form, saving through our service, so that the change is recorded and a one-time password is done with."""

    def save(self, commit: bool = True) -> Any:  # noqa: FBT001, FBT002 - Django's own signature
        return set_password(
            actor=person(self.user.person_id),
            user=self.user,
            password=self.cleaned_data["new_password1"],
            must_change_password=False,
        )
