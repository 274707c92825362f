"""What the contract says and no schema can, told to schemathesis."""

import json
import re
import uuid
from collections import defaultdict

import schemathesis
from hypothesis import strategies
from schemathesis.generation import GenerationMode

# 400 by the contract for a body that its schema lets through: what a refusal must say, in the
# error's pointer and detail, for each such rule. Anything else is a failure.
RULES = [
    # a body may repeat what the path names, but not name another
    (r"(/\d+)?/\w+", r"is not the one that the path names"),
    # what is set at creation alone may be repeated, but not become another
    (r"(/\d+)?/\w+", r"is set at creation alone: .*"),
    # an unknown id in a relation refuses the whole call
    (r"/relatedIds/\d+", r"names no \w+"),
    # new links that a rule refuses, at the set that lists them
    (r"(/\d+)?/(relatedIds|clientApps)", r"The claim rule .* takes no client apps: .*|Groups nest .*|This would .*"),
    # version 1 has no member for what is missing
    (r"(/\d+)?", r"does not say enough: .*"),
    # an address has labels of domains, and letters that nobody sees, of which a pattern knows too little
    (r"(/\d+)?/(contact|emailAddress)", r"must be an e-mail address such as .*"),
    (r"(/\d+)?/(name|loginName)", r"must be one line without letters that nobody sees, .*"),
    # a batch names each item once
    (r"/\d+(/\w+)?", r"is in this batch twice"),
    # a time ends after it begins
    (r"(/\d+)?/userValidTo", r"lies before userValidFrom"),
    # a token has a longest life
    (r"(/\d+)?/expiresOn", r"is more than two years from now"),
    # a network has a form that differs by family
    (r"(/\d+)?/networks", r"\[\d+\] must be a network such as .*"),
    # the location of an asset has a form; an instance keeps what version 1 once stored
    (r"(/\d+)?/icon", r"is no location of a custom asset: .*"),
    # a location has a form, in a batch of locations too
    (r"/\d+", r"is no key of this resource"),
    # version 1: what a patch may write, what is there for it, and what comes of it
    (r"(/\d+/patch)?/\d+(/(op|path|from|value))?", r".*"),
    (r"/\d+/ids/\d+", r"is no key of this resource|names no \w+|.*"),
    # sets in a body of version 1 name what is there
    (r"(/\d+)?/\w+/\d+/id", r"names no \w+"),
    # the tool takes its own unknown member for a known one where texts may be very long
    (r".*/x-schemathesis-unknown-property", r"is not a member of this resource"),
    # what is 404 or 409 alone is listed with what is 400: in a batch, and beside what a rule refuses
    (r"(/\d+)?(/\w+)?", r"is taken.*|is stale; .*|was used once: .*|names no \w+"),
]
# Refusals of what a caller has to prove or to know: no schema can.
PROOFS = [
    (r"/(oldPassword|token|value|code)", r"is not accepted.*|is not the code that was sent"),
    (r"/(password|newPassword)", r".*"),
    (r"/lifetimeMinutes", r"must be from 1 to \d+, .*"),
    (r"/reason", r"must not be blank: .*"),
    (r"/userId", r"names no user of this store"),
    (r"(/\d+)?/\w+Id", r"names no \w+"),
    (r"/value", r"must be an e-mail address.*|must be a telephone number.*|takes at most .*|needs at least .*"),
    (r"(/\d+)?", r"needs isUserActive, isUserLocked or lockedUntil"),
    (r"/apply\w+", r"exactly one of .*|names nothing here"),
    (r"/name|/apply\w+", r"would .*|.* secret.*"),
]
# Rules between members of the management service, and against what is there, by the operation's path.
MANAGED = [
    (r"/.*", r".*/(\w+Id|apply\w+)", r"names no \w+|belongs to another subscription"),
    (r"/.*", r".*/(apply\w+|roleType)", r"(must be empty|is missing|does not change|exactly one of).*"),
    (r"/.*", r".*/subscriptionId", r"must be empty.*|is missing: there is more than one"),
    (r"/(IdpInstance|MfaInstance).*", r".*/(name|idpTypeId)", r"names a (user store|type)\b.*"),
    (r"/IdpInstance/[^/]+/settings/confirm", r"/reviewedOn", r"must not be in the future"),
    (r"/IdpType.*", r".*/(providerType|factoryType|name)", r"must be \w+ for this factoryType|stays: .*"),
    (r"/ClientAppKeySet.*", r".*/(jwks|jwksUri|certificate|validTo|kid|algorithm)", r".*"),
    (r"/IpAddressRange.*", r".*/(lower|upper)", r"must .*"),
    (r"/Option.*", r"(/\d+)?/name", r"must be the name of an option .*"),
    (r"/UserQuestionnaireItem.*", r".*/(minLength|maxLength|validationPattern)", r".*"),
    (r"/ClientApp(AuthenticationConfiguration|RedirectUri|RequestUri|Role|Scope|Secret)?(/.*)?", r".*", r"(?!is not a member|must be (true|false|one of|a UUID|an object)).*"),
    (r"/ClaimRule.*", r".*/\w+(Rule|Replacement)", r".*"),
    (r"/ClaimRule.*", r".*/ruleLevel", r"does not fit: .*"),
    (r"/CustomView/preview", r"/sample", r"names no state of the page .*"),
    (r"/IdpInstance/[^/]+/trial/answer", r"/query", r"is of no trial of yours here .*"),
    (r"/Custom(Asset|View).*", r".*/(location|data|content|assetFileName|viewName|tenantId|clientAppId|subscriptionId)", r".*"),
    (r".*/EventSubscription.*", r".*/(url|isActive|headers|startAfter|types|subscriptionId|applyToTenantId)", r"(?!is not a member).*"),
    (r"/CertStore.*", r".*/(certificate|certificateInput|certType)", r".*"),
    (r"/RoleAssignment.*", r".*/principalId", r"names no \w+"),
    (r"/identity-replacements.*", r"/(platformUserId|replacement\w+|reason|policyFingerprint)", r".*"),
    (r"/passkey-trust/.*", r"/signedBlobJwt", r".*"),
]
# What names what is there, by member.
NAMING = {
    "customerId": "Customer",
    "applyToCustomerId": "Customer",
    "subscriptionId": "Subscription",
    "applyToSubscriptionId": "Subscription",
    "tenantId": "Tenant",
    "applyToTenantId": "Tenant",
    "idpTypeId": "IdpType",
    "idpInstanceId": "IdpInstance",
    "applyToIdpInstanceId": "IdpInstance",
    "clientAppId": "ClientApp",
    "userId": "User",
    "userid": "User",
    "groupId": "Group",
}
# Operations that read what a browser or a camera made: what a schema lets through is seldom it.
MADE_ELSEWHERE = ("/PasskeyCredential/", "/User/{userId}/image")
# The same of parameters: a filter has a grammar, a cursor is made by the server.
DETAILS = [
    r"This is not accepted\. .*",
    r"The user has no e-mail address .*",
    r"The tree has \d+ entries: .*",
    r"In filter, column \d+: .*",
    r"Only an instance of type OpenIdConnect .*",
    r"SCIM is off here: .*",
    r"The cursor does not belong to this list\. .*",
    r"The cursor is not one of this feed\. .*",
    r"after is no cursor of the feed of these events\.",
    r"Name what is sent again in one of these ways: .*",
    r"platformUserId and platformGroupId are not asked for together\.",
    r"applyToId is asked for with roleType\.",
    r"roleType names no role\.",
    r"roleType is asked for with platformUserId or platformGroupId\.",
    r"applyToId names nothing that a \w+ can be granted for\.",
    r"The claim rule .* takes no client apps: .*",
]

FILTERS = ["{0} pr", "not ({0} pr)", "{0} pr and not ({1} pr)", "({0} pr or {1} pr)", "{0} eq null"]
strings = strategies.text(min_size=1, max_size=64)
schemathesis.openapi.format("scim-filter", strategies.sampled_from(FILTERS) | strings)
schemathesis.openapi.format("cursor", strings)


def is_uuid(value):
    try:
        return isinstance(value, str) and str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False


class Seen:
    """What answers told, so that later cases name what is there."""

    ids = defaultdict(list)  # by resource
    tokens = {}  # by id
    login_names = []
    related = {}  # what a relation holds, by operation

    @classmethod
    def note(cls, resource, item):
        if not (isinstance(item, dict) and is_uuid(item.get("id"))):
            return
        if item["id"] not in cls.tokens:
            cls.ids[resource].append(item["id"])
        cls.tokens[item["id"]] = item.get("concurrencyToken")
        cls.login_names += [item["loginName"]] if item.get("loginName") else []


@schemathesis.hook
def after_call(context, case, response):
    if response.headers.get("content-type", [""])[0] not in ("application/json", "application/problem+json"):
        return
    content = json.loads(response.content)
    resource = case.operation.tags[0]
    if response.status_code == 400:
        for error in content.get("errors", []):
            if named := re.fullmatch(r"names no (\w+)", error["detail"]):
                Seen.related[case.operation.label] = named[1]
    elif response.status_code < 300 and (case.query or {}).get("dryRun") not in (True, "true"):
        for item in content[:100] if isinstance(content, list) else [content]:
            Seen.note(resource, item)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes more valid cases get past the rules above: lets them name what is there."""
    path = case.path_parameters or {}
    for name, resource in NAMING.items() | {("id", case.operation.tags[0])}:
        # one in four stays, to be refused
        if is_uuid(path.get(name)) and Seen.ids[resource] and uuid.UUID(path[name]).int % 4:
            path[name] = Seen.ids[resource][uuid.UUID(path[name]).int % len(Seen.ids[resource])]
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if case.query and "wait" in case.query:
        case.query["wait"] = 0
    wanted = case.query.get("filter") if case.query else None
    if wanted in FILTERS:
        parameters = case.operation.definition.raw["parameters"]
        names = next(one["schema"]["enum"] for one in parameters if one["name"] == "sortBy")
        case.query["filter"] = wanted.format(names[0], names[-1])
    if "userName" in path and Seen.login_names:
        path["userName"] = Seen.login_names[len(path["userName"]) % len(Seen.login_names)]
    if isinstance(case.body, dict):
        if is_uuid(case.body.get("id")) and is_uuid(path.get("id")):
            case.body["id"] = path["id"]
        if "relatedIds" in case.body and (known := Seen.ids[Seen.related.get(case.operation.label)]):
            wanted = range(len(case.body["relatedIds"]))
            case.body["relatedIds"] = [known[len(known) * 7 // (at + 8)] for at in wanted]
    for item in case.body if isinstance(case.body, list) else [case.body]:
        if not isinstance(item, dict):
            continue
        if "/passkey-security/" in case.operation.path:
            item.pop("id", None)
            if Seen.ids["User"]:
                item["userId"] = Seen.ids["User"][len(str(item)) % len(Seen.ids["User"])]
            continue
        # bodies have thousands of items: most members are none of these
        for name in item:
            resource = NAMING.get(name)
            # one in four stays, to be refused
            if resource and is_uuid(item[name]) and Seen.ids[resource] and uuid.UUID(item[name]).int % 4:
                item[name] = Seen.ids[resource][uuid.UUID(item[name]).int % len(Seen.ids[resource])]
        for name in ("instanceId", "userId", "groupId"):
            # one in four stays, to be refused
            if is_uuid(item.get(name)) and uuid.UUID(item[name]).int % 4:
                del item[name]
        named = path.get("id") or path.get("userId") or item.get("id")
        if isinstance(named, str) and "concurrencyToken" in item and Seen.tokens.get(named):
            item["concurrencyToken"] = Seen.tokens[named]


def holds_empty_text(value):
    """Whether a member is an empty text, in a draft within a body too."""
    if isinstance(value, dict):
        return any(item == "" or holds_empty_text(item) for item in value.values())
    return isinstance(value, list) and any(holds_empty_text(item) for item in value)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops refusals by the rules above, and an empty text that empties an id or a time."""
    items = case.body if isinstance(case.body, list) else [case.body]
    # who asks for a minimal answer gets none: no schema tells it from one that is whole
    if failure.code in ("ST104", "ST109") and "preference-applied" in response.headers and not response.content:
        return False
    if failure.code == "ST201" and re.search("'(uuid|date-time)' format", str(getattr(failure, "message", failure))):
        return not holds_empty_text(items)
    if failure.code != "ST202":
        return True
    if response.status_code in (400, 415) and any(part in case.operation.path for part in MADE_ELSEWHERE):
        return False
    if response.status_code != 400:
        return True
    problem = json.loads(response.content)
    errors = problem.get("errors")
    if not errors:
        # the tool adds parameters of its own, which the contract refuses: only one that is declared should be accepted
        unknown = re.fullmatch(r'There is no query parameter "(.*)" here\.', problem["detail"], re.DOTALL)
        if unknown:
            return unknown[1] in {parameter.name for parameter in case.operation.query}
        return not any(re.fullmatch(rule, problem["detail"]) for rule in DETAILS)
    path = re.sub("^/api/management/v[12]", "", case.operation.path)
    rules = [(pointer, detail) for at, pointer, detail in MANAGED if re.fullmatch(at, path)]
    follows = lambda error: any(
        re.fullmatch(pointer, error["pointer"]) and re.fullmatch(detail, error["detail"])
        for pointer, detail in RULES + PROOFS + rules
    )
    unforeseen = [error for error in errors if not follows(error)]
    # the report shows the beginning of an answer alone
    if unforeseen:
        print(f"unforeseen: {case.operation.label}: {unforeseen[:5]}")
    return bool(unforeseen)
