"""Operations of a PATCH by chance, on all that a home keeps, always the same ones for the same seed."""

from people import CENTERS, CORE, DEPARTMENTS, ENTERPRISE, FAMILY, GIVEN, LANGUAGES, NICK, TITLES, TYPES, ZONES

# what has one value, each with what it may be
ONE = {
    "name.givenName": GIVEN,
    "name.familyName": FAMILY,
    f"{ENTERPRISE}:department": DEPARTMENTS,
}
ONE_OF_STORE = {
    "name.middleName": GIVEN,
    "displayName": NICK,
    "nickName": NICK,
    "profileUrl": ["https://example.com/one", "https://example.com/Two"],
    "title": TITLES,
    "userType": TYPES,
    "preferredLanguage": LANGUAGES,
    "locale": LANGUAGES,
    "timezone": ZONES,
    f"{ENTERPRISE}:costCenter": CENTERS,
    f"{ENTERPRISE}:division": DEPARTMENTS,
}
MANY = ("emails", "phoneNumbers", "ims", "roles", "entitlements", "addresses")
OF_GROUPS = ("members", "externalid")
KINDS = ("work", "home", "other")
VERBS = ("add", "replace", "remove")


class Operations:
    """Makes operations for a resource as it is."""

    def __init__(self, random, home, people):
        self.random, self.people = random, people
        self.is_store = home != "provider"
        self.one = ONE | ONE_OF_STORE if self.is_store else ONE

    def some(self, resource):
        """A request's operations."""
        make = self.of_user if "userName" in resource else self.of_group
        return [make(resource) for _ in range(self.random.choice([1, 1, 1, 2, 3]))]

    def spelt(self, operation):
        """The operation as it may be sent: its word and the names in its path in any case, with their URN."""
        made = operation | {"op": self.random.choice([str, str.title, str.upper])(operation["op"])}
        path = operation.get("path", "")
        names, bracket, rest = path.partition("[")
        if path and self.random.random() < 0.2:
            names = self.random.choice([str.upper, str.lower, str.swapcase])(names)
        if path and ":" not in names and names.lower() not in OF_GROUPS and self.random.random() < 0.25:
            names = f"{CORE}:{names}"
        return made | {"path": names + bracket + rest} if path else made

    def of_user(self, resource):
        kinds = [self.single, self.single, self.name, self.active, self.without_path, self.manager]
        kinds += [self.several] * 6 if self.is_store else [self.address]
        return self.random.choice(kinds)(resource)

    def operation(self, verb, path, value):
        """An operation; what removes has no value."""
        made = {"op": verb, "path": path}
        return made if verb == "remove" else made | {"value": value}

    def value(self, path):
        return self.random.choice([one for one in self.one[path] if one])

    def single(self, _):
        path = self.random.choice(list(self.one))
        return self.operation(self.random.choice(VERBS), path, self.value(path))

    def name(self, _):
        parts = [path for path in self.one if path.startswith("name.")]
        chosen = self.random.sample(parts, self.random.randint(1, len(parts)))
        return self.operation(self.random.choice(VERBS), "name", {path[5:]: self.value(path) for path in chosen})

    def active(self, _):
        return self.operation(self.random.choice(VERBS[:2]), "active", self.random.random() < 0.6)

    def manager(self, _):
        path = f"{ENTERPRISE}:manager" + self.random.choice(["", ".value"])
        value = self.random.choice(self.people)
        return self.operation(self.random.choice(VERBS), path, value if path.endswith(".value") else {"value": value})

    def without_path(self, _):
        """Attributes in an object, parts and extensions within theirs."""
        value = {}
        for path in self.random.sample(list(self.one), self.random.randint(1, 3)):
            if path.startswith("name."):
                value.setdefault("name", {})[path[5:]] = self.value(path)
            elif path.startswith(ENTERPRISE):
                value.setdefault(ENTERPRISE, {})[path[len(ENTERPRISE) + 1 :]] = self.value(path)
            else:
                value[path] = self.value(path)
        if self.is_store and self.random.random() < 0.5:
            name = self.random.choice(MANY)
            value[name] = self.elements(name)
        return {"op": self.random.choice(VERBS[:2]), "value": value}

    def address(self, _):
        """The one address that a provider keeps."""
        value = self.part("emails", "value")
        if self.random.random() < 0.5:
            return self.operation(self.random.choice(VERBS), 'emails[type eq "work"].value', value)
        whole = [{"value": value, "type": "work", "primary": True}]
        return self.operation(self.random.choice(VERBS[1:]), "emails", whole)

    def several(self, resource):
        """One of many shapes of an operation on an attribute with several values."""
        name, verb = self.random.choice(MANY), self.random.choice(VERBS)
        there = resource.get(name, [])
        shape = self.random.choice(["whole", "whole", "values", "filter", "filter", "part", "part", "part"])
        if shape == "values":
            # the elements to remove, perhaps with one that is not there
            gone = self.random.sample(there, min(len(there), self.random.randint(1, 2)))
            return {"op": "remove", "path": name, "value": gone or self.elements(name)}
        if shape == "whole":
            value = self.elements(name)
            return self.operation(verb, name, value[0] if verb == "add" and self.random.random() < 0.3 else value)
        filter, is_of_one = self.filter(name, there)
        path = f"{name}[{filter}]"
        if shape == "filter":
            value = self.element(name, is_part=True)
            if not is_of_one:
                value.pop("primary", None)
            return self.operation(verb, path, value)
        of_addresses, others = ["locality", "country", "type"], ["value", "value", "display", "type", "primary"]
        part = self.random.choice(of_addresses if name == "addresses" else others if is_of_one else others[:-1])
        return self.operation(verb, f"{path}.{part}", part == "primary" or self.part(name, part))

    def filter(self, name, there):
        """A filter on elements, for the most part on one that is there; and whether it fits no more than one."""
        one = self.random.choice(there) if there and self.random.random() < 0.8 else self.element(name)
        text = "locality" if name == "addresses" else "value"
        part = self.random.choice(["type", "type", text, "primary"])
        if part == "primary" or part not in one:
            return "primary eq true", True
        made = f'{part} eq "{one[part]}"'
        is_of_one = sum(other.get(part) == one[part] for other in there) < 2
        if part == "type" and self.random.random() < 0.2:
            more = self.random.choice([" and primary eq true", f' and {text} co "1"', ' or type eq "other"'])
            return made + more, is_of_one and not more.startswith(" or")
        return made, is_of_one

    def part(self, name, part):
        number = self.random.randrange(4)
        if part == "type":
            return self.random.choice(KINDS)
        if part == "value" and name == "emails":
            return f"p{number}@example.com"
        if part == "value" and name == "phoneNumbers":
            return f"+49 30 {number}{number}1"
        return f"{part} {number}"

    def element(self, name, is_part=False):
        parts = ("locality", "country") if name == "addresses" else ("value", "display")
        made = {parts[0]: self.part(name, parts[0]), "type": self.part(name, "type")}
        if self.random.random() < 0.3:
            made[parts[1]] = self.part(name, parts[1])
        if self.random.random() < 0.25:
            made["primary"] = True
        if is_part and self.random.random() < 0.5:
            del made["type"]
        return made

    def elements(self, name):
        made = [self.element(name) for _ in range(self.random.randint(1, 3))]
        # that of several one alone is primary is checked where it is read
        for one in made[1:]:
            one.pop("primary", None)
        return made

    def of_group(self, resource):
        there = [{"value": one["value"]} for one in resource.get("members", [])]
        chosen = [{"value": one} for one in self.random.sample(self.people, self.random.randint(1, 3))]
        one = self.random.choice(there or chosen)
        return self.random.choice(
            [
                {"op": "add", "path": "members", "value": chosen},
                {"op": "add", "path": "members", "value": chosen[0]},
                {"op": "add", "value": {"members": chosen}},
                {"op": "add", "path": "members", "value": [one]},
                {"op": "replace", "path": "members", "value": chosen},
                {"op": "replace", "value": {"members": chosen}},
                {"op": "remove", "path": f'members[value eq "{one["value"]}"]'},
                {"op": "remove", "path": "members", "value": [one]},
                {"op": "remove", "path": "members", "value": chosen},
                {"op": "remove", "path": "members"},
                {"op": "replace", "path": "externalId", "value": f"{self.random.randrange(1000)} {resource['id']}"},
                {"op": "remove", "path": "externalId"},
            ]
        )
