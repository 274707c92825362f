"""People and groups with varied attributes, the same ones each time."""

CORE = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"

GIVEN = [
    "Ada",
    "ada",
    "Grace",
    "Zoë",
    "ÉMILE",
    "Jean-Luc",
    "o'Neil",
    "Bo",
    "Per_cent 100%",
    'Quo"ted',
    "Back\\slash",
    "Back\\Slash",
    "",
]
FAMILY = ["Lovelace", "LOVELACE", "Hopper", "de la Cruz", "Müller", "Łukasz", "van Dyk", "Li", "O'Brien", ""]
NICK = ["Ace", "ace", "The Boss", "Bö", ""]
TITLES = ["Engineer", "engineer II", "Chief of Staff", "Chef", "Über-Chef", ""]
TYPES = ["Employee", "contractor", ""]
LANGUAGES = ["de", "en-GB", "fr", ""]
ZONES = ["Europe/Berlin", "America/New_York", ""]
DEPARTMENTS = ["Engines", "engines", "Research & Development", "R%D", "Sales_North", ""]
CENTERS = ["4100", "4200-a", "X", ""]
ADDRESSES = ["example.com", "Example.org", "mail.example.net"]
# what an element of emails or phoneNumbers says of itself, by itself the one that is mapped
KINDS = [
    {"type": "work", "primary": True},
    {"type": "work"},
    {"primary": True},
    {"type": "home"},
    {"type": "home", "primary": True},
    {},
]


def person(random, number, marker, home):
    """One person: of each attribute some have a value, and some have none."""
    made = {
        "schemas": [CORE],
        "userName": f"{random.choice(['user', 'User', 'USER'])}-{number:02}-{random.choice(['a', 'B', 'ü'])}{marker}",
        "externalId": f"{random.choice('xXy')}-{number}" if random.random() < 0.7 else "",
        "name": {"givenName": random.choice(GIVEN), "familyName": random.choice(FAMILY)},
        "active": random.random() < 0.7,
    }
    if random.random() < 0.7:
        made["emails"] = [{"value": f"{random.choice(['p', 'P'])}{number}{marker}@{random.choice(ADDRESSES)}"}]
        # a provider keeps of an address no more than the value
        made["emails"][0] |= KINDS[0] if home == "provider" or random.random() < 0.6 else random.choice(KINDS)
    extension = {"department": random.choice(DEPARTMENTS)}
    if home != "provider":
        made |= {
            "nickName": random.choice(NICK),
            "title": random.choice(TITLES),
            "userType": random.choice(TYPES),
            "preferredLanguage": random.choice(LANGUAGES),
            "locale": random.choice(LANGUAGES),
            "timezone": random.choice(ZONES),
            "displayName": f"{random.choice(NICK)} {number}" if random.random() < 0.7 else "",
        }
        extension |= {"costCenter": random.choice(CENTERS), "employeeNumber": f"{number % 7}"}
        if "emails" in made and random.random() < 0.3:
            made["emails"].append({"value": f"second{number}{marker}@example.com", "type": "other"})
        if random.random() < 0.6:
            made["phoneNumbers"] = [{"value": f"+49 30 {number}{number}", **KINDS[0]}]
    made[ENTERPRISE] = without_empty(extension)
    return without_empty(made)


def without_empty(value):
    """The object without members that are empty, in it or in its objects."""
    if not isinstance(value, dict):
        return value
    made = {name: without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in made.items() if inner not in ("", {}, [], None)}
