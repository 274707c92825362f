"""Smoke run of the clients that openapi-python-client makes."""

import base64
import io
import re
import urllib.parse
from importlib import import_module

import chancery_management.models as management
import chancery_userstore.models as userstore
from chancery_management import AuthenticatedClient
from chancery_management.types import UNSET
from chancery_userstore import AuthenticatedClient as StoreClient
from chancery_userstore.types import File
from smoke import BASE, CSS, PIXEL, RUN, access_token, same

token = access_token()
rest = AuthenticatedClient(base_url=BASE, token=token, raise_on_unexpected_status=True)
store = StoreClient(base_url=BASE, token=token, raise_on_unexpected_status=True)


def full(name, *path, **more):
    """An operation's answer with status and headers. Every one is a module of its own."""
    module = import_module(f"chancery_{name}")
    return module.sync_detailed(*path, client=store if name.startswith("userstore.") else rest, **more)


def call(name, *path, **more):
    """An operation's answer, which must not be a problem."""
    answer = full(name, *path, **more)
    if answer.status_code >= 400:
        raise SystemExit(f"FAILED {name}: {answer.content.decode()}")
    return answer.parsed


# a customer with all below it
customer = call(
    "management.api.customer.create_customer",
    body=management.CustomerCreate(name=f"Customer {RUN}", address="1 Road"),
)
same("create a customer", customer.address, "1 Road")
subscription = call(
    "management.api.subscription.create_subscription",
    body=management.SubscriptionCreate(name=f"Subscription {RUN}", customer_id=customer.id),
)
same("create a subscription", (subscription.customer_id, subscription.status.value), (customer.id, "Active"))
tenant = call(
    "management.api.tenant.create_tenant",
    body=management.TenantCreate(name=f"Tenant {RUN}", subscription_id=subscription.id),
)
same("create a tenant", (tenant.subscription_id, tenant.is_active), (subscription.id, True))
app = call(
    "management.api.client_app.create_client_app",
    body=management.ClientAppCreate(
        name=f"App {RUN}",
        subscription_id=subscription.id,
        client_uri="https://app.example",
        allow_client_credential_login=True,
    ),
)
scope = call(
    "management.api.client_app_scope.create_client_app_scope",
    body=management.ClientAppScopeCreate(key="orders", client_app_id=app.id),
)
same("create a client app with a scope", (scope.client_app_id, scope.name), (app.id, "orders"))

# a secret is told once
secrets = "management.api.client_app_secret"
secret = call(f"{secrets}.create_client_app_secret", body=management.ClientAppSecretCreate(client_app_id=app.id))
same("a secret is returned when it is created", len(secret.secret), 43)
same("and never again", call(f"{secrets}.get_client_app_secret", secret.id).secret, None)
same("a client app gets a token with it", len(access_token(app.id, secret.secret).split(".")), 3)

# a claim rule, and what it is related to
rules = "management.api.claim_rule"
rule = call(
    f"{rules}.create_claim_rule",
    body=management.ClaimRuleCreate(
        name=f"Rule {RUN}",
        rule_type=management.ClaimRuleCreateRuleType.FILTER,
        rule_level=management.ClaimRuleCreateRuleLevel.CLIENTAPP,
        subscription_id=subscription.id,
        client_apps=[management.ClaimRuleCreateClientAppsType0Item(id=app.id)],
    ),
)


def related(rule):
    return [one.id for one in rule.client_apps]


none, both = management.RelatedIds(related_ids=[]), management.RelatedIds(related_ids=[app.id])
same("create a claim rule with clientApps", related(rule), [app.id])
same("set a relation", related(call(f"{rules}.set_claim_rule_client_apps", rule.id, body=none)), [])
same("add to a relation", related(call(f"{rules}.add_claim_rule_client_apps", rule.id, body=both)), [app.id])
same("read a relation", related(call(f"{rules}.get_claim_rule", rule.id)), [app.id])
same("remove from a relation", related(call(f"{rules}.remove_claim_rule_client_apps", rule.id, body=both)), [])

# an asset goes by its location
assets = "management.api.custom_asset"
location = f"/assets/global/{RUN}.css"
asset = call(
    f"{assets}.create_custom_asset",
    body=management.CustomAssetCreate(
        location=location, mimetype=management.CustomAssetCreateMimetype("text/css"), data=CSS
    ),
)
same("upload an asset", (asset.size, asset.file_name), (14, f"{RUN}.css"))
same("read an asset by its location", call(f"{assets}.get_custom_asset", location).data, CSS)
call(f"{assets}.delete_custom_asset_batch", body=[location])
same("delete a batch of assets", call(f"{assets}.get_custom_assets", filter_=f'location eq "{location}"'), [])

# null in a PATCH wipes nothing
sent = management.ClientAppPatch(concurrency_token=app.concurrency_token)
unset = [name for name, value in vars(type(sent)).items() if getattr(sent, name, None) is UNSET]
for name in unset:
    setattr(sent, name, None)
same("every member is sent as null", list(sent.to_dict().values()).count(None), len(unset))
after = call("management.api.client_app.patch_client_app", app.id, body=sent).to_dict()
before = call("management.api.client_app.get_client_app", app.id).to_dict()
same("a PATCH of nulls answers what is there", after, before)
changed = {name for name, value in app.to_dict().items() if after[name] != value}
same("and wipes nothing", changed - {"concurrencyToken", "clientAppScopes", "clientAppSecrets"}, set())

# the other media type of a PATCH goes by the class of its body
customers = "management.api.customer"
merge = management.CustomerMergePatch(address=None, concurrency_token=customer.concurrency_token)
current = call(f"{customers}.patch_customer", customer.id, body=merge)
same("null in a merge patch empties", (current.address, current.name), (None, customer.name))

# a stale token
stale = management.CustomerPatch(name="stale", concurrency_token=customer.concurrency_token)
refused = full(f"{customers}.patch_customer", customer.id, body=stale)
problem = refused.parsed
same("a stale token is a problem", (refused.status_code, problem.type_), (409, "/problems/concurrency-conflict"))
same("that tells the current one", problem.current_concurrency_token, current.concurrency_token)

# many at once, and lists
names = [f"Batch {RUN} {place}" for place in range(3)]
batch = call(f"{customers}.create_customer_batch", body=[management.CustomerCreate(name=name) for name in names])
same("create a batch", [one.name for one in batch], names)
about = {"filter_": f'name sw "Batch {RUN}"', "sort_by": management.GetCustomersSortBy.NAME}
page = full(f"{customers}.get_customers", **about, count=2, include_total=True)
same("a page of a filtered list", [one.id for one in page.parsed], [one.id for one in batch[:2]])
same("tells the number of all", page.headers["X-Total-Count"], "3")
link = re.fullmatch(r'<([^>]*)>; rel="next"', page.headers["Link"])[1]
cursor = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)["cursor"][0]
rest_of_it = call(f"{customers}.get_customers", **about, count=2, cursor=cursor)
same("its Link leads to the next", [one.id for one in rest_of_it], [batch[2].id])
call(f"{customers}.delete_customer_batch", body=[one.id for one in batch])
same("delete a batch", call(f"{customers}.get_customers", **about), [])

# the user store
users, here = "userstore.api.user", "default"
user = call(f"{users}.create_user", here, body=userstore.UserCreate(login_name=f"client-{RUN}", first_name="Ada"))
group = call("userstore.api.group.create_group", here, body=userstore.GroupCreate(name=f"Client {RUN}"))
into = userstore.RelatedIds(related_ids=[group.id])
joined = call(f"{users}.set_user_member_of_groups", here, user.id, body=into)
same("a user joins a group", [one.name for one in joined.member_of_groups], [group.name])
bytes_of_it = base64.b64decode(PIXEL)
image = call("userstore.api.user_image.set_user_image", here, user.id, body=File(payload=io.BytesIO(bytes_of_it)))
same("and gets an image", image.user_id, user.id)
call(f"{users}.delete_batch", here, body=[user.id])
same("users are deleted", call(f"{users}.get_users", here, filter_=f'id eq "{user.id}"'), [])
