"""Who may do what: four roles, each of which may do all that the one before it may."""

from enum import StrEnum

from storage.errors import Forbidden


class Role(StrEnum):
    """What a person is to this race; `at_least` orders them, plain comparison would go by the letters."""

    VISITOR = "visitor"
    PERSON = "person"
    ORGANIZER = "organizer"
    OPERATOR = "operator"

    def at_least(self, other: "Role") -> bool:
        """Tell whether this role may do what `other` may."""
        return _ORDER[self] >= _ORDER[other]


_ORDER = {role: place for place, role in enumerate(Role)}


class NotOrganizer(Forbidden):
    """Only an organizer may do this."""

    code = "NOT_ORGANIZER"


class NotOperator(Forbidden):
    """Only an operator may do this."""

    code = "NOT_OPERATOR"
