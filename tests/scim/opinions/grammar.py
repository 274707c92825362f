"""Filters by chance, of all that a home can look for, always the same ones for the same seed.

A filter is made in two spellings: `sent` is how the server gets it, with names and operators in any case, some behind
their URN; `plain` has the names of the schemas. Both have the same meaning.
"""

import json
from dataclasses import dataclass

from people import CORE, ENTERPRISE

TEXT = ("eq", "ne", "co", "sw", "ew", "gt", "ge", "lt", "le", "pr")
EQUAL = ("eq", "ne", "pr")
# what profile entries are found by
ENTRY = ("eq", "sw", "pr")


@dataclass
class Attribute:
    """What a filter asks for: an attribute or its part, within a schema."""

    name: str
    operators: tuple
    schema: str = CORE
    # whether case counts, by the schema
    exact: bool = False

    @property
    def place(self):
        return self.schema, self.name


BOTH = [
    Attribute("userName", TEXT),
    Attribute("externalId", TEXT, exact=True),
    Attribute("name.givenName", TEXT),
    Attribute("name.familyName", TEXT),
    Attribute("emails.value", TEXT),
    Attribute("emails", EQUAL),
    Attribute("active", EQUAL),
    Attribute("id", EQUAL, exact=True),
    Attribute("department", TEXT, schema=ENTERPRISE),
]
STORE = [
    Attribute("title", ENTRY),
    Attribute("userType", ENTRY),
    Attribute("displayName", ENTRY),
    Attribute("preferredLanguage", ENTRY),
    Attribute("nickName", TEXT),
    Attribute("locale", TEXT),
    Attribute("timezone", TEXT),
    Attribute("phoneNumbers.value", TEXT),
    Attribute("department", ENTRY, schema=ENTERPRISE),
    Attribute("costCenter", ENTRY, schema=ENTERPRISE),
    Attribute("employeeNumber", ENTRY, schema=ENTERPRISE),
    Attribute("groups.value", EQUAL, exact=True),
]


def attributes(home):
    if home == "provider":
        return BOTH
    return [one for one in BOTH if one.schema == CORE] + STORE


def values_at(resource, attribute):
    """All values that the resource has at the attribute."""
    found = [resource.get(attribute.schema, {}) if attribute.schema != CORE else resource]
    names = attribute.name.split(".")
    for name in ["emails", "value"] if names == ["emails"] else names:
        found = [inner for one in found if name in one for inner in listed(one[name])]
    return found


def listed(value):
    return value if isinstance(value, list) else [value]


class Grammar:
    """Makes filters about the values of these resources."""

    def __init__(self, random, home, resources, ids):
        self.random = random
        self.attributes = attributes(home)
        self.values = {
            one.place: sorted({value for resource in resources for value in values_at(resource, one)})
            for one in self.attributes
        }
        # ids are made by chance: their order is that of their making
        for values in self.values.values():
            values.sort(key=lambda value: ids.index(value) if value in ids else -1)
        self.emails = next(one for one in self.attributes if one.name == "emails.value")

    def filter(self, depth=3):
        """A filter in both spellings."""
        random = self.random
        kind = random.choices(["compare", "and", "or", "not", "group", "element"], [4, 2, 2, 2, 1, 1])[0]
        if kind == "element":
            return self.element()
        if depth == 0 or kind == "compare":
            return self.compare()
        if kind in ("and", "or"):
            return join([self.filter(depth - 1), (f" {self.any_case(kind)} ", f" {kind} "), self.filter(depth - 1)])
        before = (f"{self.any_case('not')} (", "not (") if kind == "not" else ("(", "(")
        return join([before, self.filter(depth - 1), (")", ")")])

    def compare(self):
        attribute = self.random.choice(self.attributes)
        name = self.any_case(attribute.name)
        plain = attribute.name if attribute.schema == CORE else f"{attribute.schema}:{attribute.name}"
        if attribute.schema != CORE or self.random.random() < 0.2:
            name = f"{self.any_case(attribute.schema)}:{name}"
        return join([(name, plain), self.test(attribute, self.random.choice(attribute.operators))])

    def element(self):
        """`emails[..]`, with `.value` behind it at times, as directories write it."""
        kind = self.random.choice(['type eq "work"', "primary eq true", 'type eq "home"', 'type eq "Work"', "type pr"])
        value = join([(self.any_case("value"), "value"), self.test(self.emails, self.random.choice(TEXT))])
        shape = self.random.choice(["kind", "and", "or", "not", "behind"])
        if shape == "kind":
            return join([(f"emails[{kind}]",) * 2])
        if shape == "behind":
            test = self.test(self.emails, self.random.choice(TEXT))
            return join([(f"{self.any_case('emails')}[{kind}].value", f"emails[{kind}].value"), test])
        if shape == "not":
            return join([("emails[not (",) * 2, value, (f") and {kind}]",) * 2])
        return join([(f"emails[{kind} {self.any_case(shape)} ", f"emails[{kind} {shape} "), value, ("]", "]")])

    def test(self, attribute, operator):
        """An operator with its value."""
        if operator == "pr":
            return f" {self.any_case('pr')}", " pr"
        literal = self.literal(attribute, operator)
        sent = json.dumps(literal, ensure_ascii=self.random.random() < 0.2)
        return f" {self.any_case(operator)} {sent}", f" {operator} {json.dumps(literal, ensure_ascii=False)}"

    def literal(self, attribute, operator):
        random = self.random
        if operator in ("eq", "ne") and random.random() < 0.1 and attribute.name != "active":
            return None
        if attribute.name == "active":
            return random.random() < 0.5
        value = random.choice(self.values[attribute.place])
        if attribute.name in ("id", "groups.value"):
            return "nobody" if random.random() < 0.04 else value
        # of a part half of what is asked for is at the beginning or at the end, of an order the whole value
        if operator not in ("eq", "ne") and random.random() < 0.5:
            begin = random.randrange(len(value))
            value = value[begin : random.randrange(begin + 1, len(value) + 1)]
        elif operator == "sw":
            value = value[: random.randrange(1, len(value) + 1)]
        elif operator == "ew":
            value = value[random.randrange(len(value)) :]
        return self.any_case(value)

    def any_case(self, text):
        kind = self.random.choice(["as it is", "as it is", "upper", "lower", "mixed"])
        if kind == "upper":
            return text.upper() if len(text.upper()) == len(text) else text
        if kind == "lower":
            return text.lower()
        if kind == "mixed":
            return "".join(letter.swapcase() if self.random.random() < 0.5 else letter for letter in text)
        return text


def join(parts):
    """Several pieces, each in both spellings, as one."""
    return tuple("".join(spelling) for spelling in zip(*parts, strict=True))
