"""Check of the associations of a machine, in any format of machine files."""

from __future__ import annotations

from collections.abc import Sequence

from poolwise.errors import InputError, UnknownNameError
from poolwise.model import AssociationLimits


def check_associations(entries: Sequence[AssociationLimits]) -> None:
    """Raise InputError for duplicate associations, users with a parent, missing accounts, and cycles of accounts."""
    parents, seen = {each.account: each.parent for each in entries if not each.user}, set[tuple[str, str]]()
    for k, each in enumerate(entries):
        if (each.account, each.user) in seen:
            raise InputError(f"duplicate association of {each.label}", remedy="merge the entries").at(
                "association", k, "account"
            )
        seen.add((each.account, each.user))
        if each.user and each.parent:
            problem = "a user in an account has no parent"
            raise InputError(problem, remedy="state the parent of the account").at("association", k, "parent")
        if each.parent and each.parent not in parents:
            raise UnknownNameError.of("account", each.parent, parents).at("association", k, "parent")
        above, steps = each.parent, 0
        while above and steps <= len(parents):
            above, steps = parents.get(above, ""), steps + 1
        if above:
            problem = f"account '{each.account}' is its own ancestor"
            raise InputError(problem, remedy="correct the parents").at("association", k, "parent")
