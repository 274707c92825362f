"""Smoke run of the Python clients that openapi-generator makes."""

import re
import urllib.parse

import chancery_management as management
import chancery_userstore as userstore
from smoke import BASE, CSS, PIXEL, RUN, access_token, same

token = access_token()
rest = management.ApiClient(management.Configuration(host=BASE, access_token=token))
customers = management.CustomerApi(rest)
apps = management.ClientAppApi(rest)
secrets = management.ClientAppSecretApi(rest)
rules = management.ClaimRuleApi(rest)
assets = management.CustomAssetApi(rest)

# a customer with all below it
customer = customers.create_customer(management.CustomerCreate(name=f"Customer {RUN}", address="1 Road"))
same("create a customer", customer.address, "1 Road")
subscription = management.SubscriptionApi(rest).create_subscription(
    management.SubscriptionCreate(name=f"Subscription {RUN}", customer_id=customer.id)
)
same("create a subscription", (subscription.customer_id, subscription.status), (customer.id, "Active"))
tenant = management.TenantApi(rest).create_tenant(
    management.TenantCreate(name=f"Tenant {RUN}", subscription_id=subscription.id)
)
same("create a tenant", (tenant.subscription_id, tenant.is_active), (subscription.id, True))
app = apps.create_client_app(
    management.ClientAppCreate(
        name=f"App {RUN}",
        subscription_id=subscription.id,
        client_uri="https://app.example",
        allow_client_credential_login=True,
    )
)
scope = management.ClientAppScopeApi(rest).create_client_app_scope(
    management.ClientAppScopeCreate(key="orders", client_app_id=app.id)
)
same("create a client app with a scope", (scope.client_app_id, scope.name), (app.id, "orders"))

# a secret is told once
secret = secrets.create_client_app_secret(management.ClientAppSecretCreate(client_app_id=app.id))
same("a secret is returned when it is created", len(secret.secret), 43)
same("and never again", secrets.get_client_app_secret(secret.id).secret, None)
same("a client app gets a token with it", len(access_token(app.id, secret.secret).split(".")), 3)

# a claim rule, and what it is related to
rule = rules.create_claim_rule(
    management.ClaimRuleCreate(
        name=f"Rule {RUN}",
        rule_type="Filter",
        rule_level="ClientApp",
        subscription_id=subscription.id,
        client_apps=[management.ClaimRuleCreateClientAppsInner(id=app.id)],
    )
)


def related(rule):
    return [one.id for one in rule.client_apps]


both = management.RelatedIds(related_ids=[app.id])
same("create a claim rule with clientApps", related(rule), [app.id])
none = management.RelatedIds(related_ids=[])
same("set a relation", related(rules.set_claim_rule_client_apps(rule.id, none)), [])
same("add to a relation", related(rules.add_claim_rule_client_apps(rule.id, both)), [app.id])
same("read a relation", related(rules.get_claim_rule(rule.id)), [app.id])
same("remove from a relation", related(rules.remove_claim_rule_client_apps(rule.id, both)), [])

# an asset goes by its location
location = f"/assets/global/{RUN}.css"
asset = assets.create_custom_asset(management.CustomAssetCreate(location=location, mimetype="text/css", data=CSS))
same("upload an asset", (asset.size, asset.file_name), (14, f"{RUN}.css"))
same("read an asset by its location", assets.get_custom_asset(location).data, CSS)
assets.delete_custom_asset_batch([location])
same("delete a batch of assets", assets.get_custom_assets(filter=f'location eq "{location}"'), [])

# null in a PATCH wipes nothing
nothing = dict.fromkeys(management.ClientAppPatch.model_fields, None)
sent = management.ClientAppPatch(**{**nothing, "concurrency_token": app.concurrency_token})
same("every member is sent as null", list(sent.to_dict().values()).count(None), len(nothing) - 1)
patched = apps.patch_client_app(app.id, sent)
before, after = apps.get_client_app(app.id).to_dict(), patched.to_dict()
same("a PATCH of nulls answers what is there", after, before)
changed = {name for name, value in app.to_dict().items() if after[name] != value}
same("and wipes nothing", changed - {"concurrencyToken", "clientAppScopes", "clientAppSecrets"}, set())

# a stale token
current = customers.patch_customer(
    customer.id, management.CustomerPatch(name=f"Renamed {RUN}", concurrency_token=customer.concurrency_token)
)
same("a PATCH of one member keeps the other", current.address, "1 Road")
try:
    customers.patch_customer(
        customer.id, management.CustomerPatch(name="stale", concurrency_token=customer.concurrency_token)
    )
    problem = None
except management.exceptions.ConflictException as conflict:
    problem = conflict.data
same("a stale token is a problem", (problem.status, problem.type), (409, "/problems/concurrency-conflict"))
same("that tells the current one", problem.current_concurrency_token, current.concurrency_token)

# many at once, and lists
batch = customers.create_customer_batch(
    [management.CustomerCreate(name=f"Batch {RUN} {place}") for place in range(3)]
)
same("create a batch", [one.name for one in batch], [f"Batch {RUN} {place}" for place in range(3)])
about = {"filter": f'name sw "Batch {RUN}"', "sort_by": "name"}
page = customers.get_customers_with_http_info(**about, count=2, include_total=True)
same("a page of a filtered list", [one.id for one in page.data], [one.id for one in batch[:2]])
same("tells the number of all", page.headers["x-total-count"], "3")
link = re.fullmatch(r'<([^>]*)>; rel="next"', page.headers["link"])[1]
cursor = urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)["cursor"][0]
rest_of_it = customers.get_customers(**about, count=2, cursor=cursor)
same("its Link leads to the next", [one.id for one in rest_of_it], [batch[2].id])
customers.delete_customer_batch([one.id for one in batch])
same("delete a batch", customers.get_customers(**about), [])

# the user store
store = userstore.ApiClient(userstore.Configuration(host=BASE, access_token=token))
users = userstore.UserApi(store)
user = users.create_user("default", userstore.UserCreate(login_name=f"generator-{RUN}", first_name="Ada"))
group = userstore.GroupApi(store).create_group("default", userstore.GroupCreate(name=f"Generator {RUN}"))
joined = users.set_user_member_of_groups("default", user.id, userstore.RelatedIds(related_ids=[group.id]))
same("a user joins a group", [one.name for one in joined.member_of_groups], [group.name])
image = userstore.UserImageApi(store).set_user_image(
    "default", user.id, userstore.SetUserImageRequest(content_type="image/png", data=PIXEL)
)
same("and gets an image", image.user_id, user.id)
users.delete_batch("default", [user.id])
same("users are deleted", users.get_users("default", filter=f'id eq "{user.id}"'), [])
