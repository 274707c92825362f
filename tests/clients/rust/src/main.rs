//! Smoke run of the Rust clients that openapi-generator makes.

use std::{env, error::Error, fmt::Debug, process::exit};

use chancery_management::{apis as api, models as management};
use chancery_userstore::{apis as store_api, models as userstore};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const CSS: &str = "Ym9keXttYXJnaW46MH0=";
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Says that something is as it should be, or ends the program.
fn same<T: PartialEq + Debug>(what: &str, is: T, should_be: T) {
    if is != should_be {
        println!("FAILED {what}: {is:?} is not {should_be:?}");
        exit(1);
    }
    println!("ok {what}");
}

/// The documents name the token endpoint, and no generator makes a function of it.
async fn access_token(base: &str, client: &str, secret: &str) -> Result<String, Box<dyn Error>> {
    let request = reqwest::Client::new()
        .post(format!("{base}/connect/token"))
        .basic_auth(client, Some(secret))
        .form(&[("grant_type", "client_credentials")]);
    let answer: Value = request.send().await?.error_for_status()?.json().await?;
    Ok(answer["access_token"].as_str().unwrap_or_default().to_owned())
}

/// All members of a body or an answer.
fn members(of: &impl serde::Serialize) -> Map<String, Value> {
    match json!(of) {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let base = env::var("CHANCERY_BASE")?;
    // a server that is not new keeps what another run made
    let run = Uuid::new_v4().simple().to_string();
    let token = access_token(&base, "root", &env::var("CHANCERY_ROOT_CLIENT_SECRET")?).await?;
    let rest = &api::configuration::Configuration {
        base_path: base.clone(),
        oauth_access_token: Some(token.clone()),
        ..Default::default()
    };

    // a customer with all below it
    let body = management::CustomerCreate {
        address: Some(Some("1 Road".to_owned())),
        ..management::CustomerCreate::new(format!("Customer {run}"))
    };
    let customer = api::customer_api::create_customer(rest, body, None, None, None).await?;
    same("create a customer", customer.address.as_deref(), Some("1 Road"));
    let body = management::SubscriptionCreate::new(customer.id, format!("Subscription {run}"));
    let subscription = api::subscription_api::create_subscription(rest, body, None, None, None).await?;
    same("create a subscription", subscription.customer_id, customer.id);
    let body = management::TenantCreate::new(format!("Tenant {run}"), subscription.id);
    let tenant = api::tenant_api::create_tenant(rest, body, None, None, None).await?;
    same("create a tenant", (tenant.subscription_id, tenant.is_active), (subscription.id, true));
    let body = management::ClientAppCreate {
        subscription_id: Some(Some(subscription.id)),
        client_uri: Some(Some("https://app.example".to_owned())),
        allow_client_credential_login: Some(Some(true)),
        ..management::ClientAppCreate::new(format!("App {run}"))
    };
    let app = api::client_app_api::create_client_app(rest, body, None, None, None).await?;
    let app_id = app.id.to_string();
    let body = management::ClientAppScopeCreate::new(app.id, "orders".to_owned());
    let scope = api::client_app_scope_api::create_client_app_scope(rest, body, None, None, None).await?;
    same(
        "create a client app with a scope",
        (scope.client_app_id, scope.name.as_deref()),
        (app.id, Some("orders")),
    );

    // a secret is told once
    let body = management::ClientAppSecretCreate::new(app.id);
    let secret = api::client_app_secret_api::create_client_app_secret(rest, body, None, None, None).await?;
    let told = secret.secret.unwrap_or_default();
    same("a secret is returned when it is created", told.len(), 43);
    let again =
        api::client_app_secret_api::get_client_app_secret(rest, &secret.id.to_string(), None, None).await?;
    same("and never again", again.secret, None);
    let its = access_token(&base, &app_id, &told).await?;
    same("a client app gets a token with it", its.split('.').count(), 3);

    // a claim rule, and what it is related to
    use management::claim_rule_create::{RuleLevel, RuleType};
    let body = management::ClaimRuleCreate {
        subscription_id: Some(Some(subscription.id)),
        client_apps: Some(Some(vec![management::ClaimRuleCreateClientAppsInner::new(app.id)])),
        ..management::ClaimRuleCreate::new(format!("Rule {run}"), RuleLevel::ClientApp, RuleType::Filter)
    };
    let rule = api::claim_rule_api::create_claim_rule(rest, body, None, None, None).await?;
    let rule_id = rule.id.to_string();
    let related = |rule: management::ClaimRule| rule.client_apps.iter().map(|one| one.id).collect::<Vec<_>>();
    let none = management::RelatedIds::new(Vec::new());
    let both = management::RelatedIds::new(vec![app.id]);
    same("create a claim rule with clientApps", related(rule), vec![app.id]);
    let set = api::claim_rule_api::set_claim_rule_client_apps(rest, &rule_id, none, None, None, None).await?;
    same("set a relation", related(set), Vec::new());
    let added =
        api::claim_rule_api::add_claim_rule_client_apps(rest, &rule_id, both.clone(), None, None, None)
            .await?;
    same("add to a relation", related(added), vec![app.id]);
    let read = api::claim_rule_api::get_claim_rule(rest, &rule_id, None, None).await?;
    same("read a relation", related(read), vec![app.id]);
    let removed =
        api::claim_rule_api::remove_claim_rule_client_apps(rest, &rule_id, both, None, None, None).await?;
    same("remove from a relation", related(removed), Vec::new());

    // an asset goes by its location
    let location = format!("/assets/global/{run}.css");
    let css = management::custom_asset_create::Mimetype::TextSlashCss;
    let body = management::CustomAssetCreate::new(CSS.to_owned(), location.clone(), css);
    let asset = api::custom_asset_api::create_custom_asset(rest, body, None, None, None).await?;
    same("upload an asset", (asset.size, asset.file_name), (Some(14), Some(format!("{run}.css"))));
    let read = api::custom_asset_api::get_custom_asset(rest, &location, None, None).await?;
    same("read an asset by its location", read.data.as_str(), CSS);
    api::custom_asset_api::delete_custom_asset_batch(rest, vec![location.clone()], None).await?;
    let filter = format!("location eq \"{location}\"");
    let left =
        api::custom_asset_api::get_custom_assets(rest, Some(&filter), None, None, None, None, None).await?;
    same("delete a batch of assets", left.len(), 0);

    // null in a PATCH wipes nothing
    same("what is not set is not sent", members(&management::ClientAppPatch::new(String::new())).len(), 1);
    let mut nulls: Map<String, Value> =
        members(&app).into_iter().map(|(name, _)| (name, Value::Null)).collect();
    nulls.insert("concurrencyToken".to_owned(), json!(app.concurrency_token));
    let sent: management::ClientAppPatch = serde_json::from_value(Value::Object(nulls))?;
    let nulls = members(&sent).values().filter(|value| value.is_null()).count();
    same("every member is sent as null", nulls, members(&sent).len() - 1);
    let mut after =
        members(&api::client_app_api::patch_client_app(rest, &app_id, sent, None, None, None).await?);
    let read = members(&api::client_app_api::get_client_app(rest, &app_id, None, None).await?);
    same("a PATCH of nulls answers what is there", &after, &read);
    let mut before = members(&app);
    for name in ["concurrencyToken", "clientAppScopes", "clientAppSecrets"] {
        after.remove(name);
        before.remove(name);
    }
    same("and wipes nothing", after, before);

    // a stale token
    let id = customer.id.to_string();
    let stale = management::CustomerPatch {
        name: Some(Some(format!("Renamed {run}"))),
        ..management::CustomerPatch::new(customer.concurrency_token)
    };
    let current = api::customer_api::patch_customer(rest, &id, stale.clone(), None, None, None).await?;
    same("a PATCH of one member keeps the other", current.address.as_deref(), Some("1 Road"));
    let refused = api::customer_api::patch_customer(rest, &id, stale, None, None, None).await;
    let Err(api::Error::ResponseError(refused)) = refused else {
        return Err("a stale token is taken".into());
    };
    let problem: management::Problem = serde_json::from_str(&refused.content)?;
    same(
        "a stale token is a problem",
        (refused.status.as_u16(), problem.r#type.as_str()),
        (409, "/problems/concurrency-conflict"),
    );
    same("that tells the current one", problem.current_concurrency_token, Some(current.concurrency_token));

    // many at once, and lists
    let names: Vec<String> = (0..3).map(|place| format!("Batch {run} {place}")).collect();
    let bodies = names.iter().cloned().map(management::CustomerCreate::new).collect();
    let batch = api::customer_api::create_customer_batch(rest, bodies, None, None, None).await?;
    let called =
        |customers: &[management::Customer]| customers.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    same("create a batch", called(&batch), names.clone());
    let all = format!("name sw \"Batch {run}\"");
    let list = async |filter: &str, count| {
        api::customer_api::get_customers(rest, Some(filter), Some("name"), None, count, None, None).await
    };
    let page = list(&all, Some(2)).await?;
    same("a page of a filtered list", called(&page), names[..2].to_vec());
    // the functions of this generator answer no headers, so no Link: the filter goes on
    let next = list(&format!("{all} and name gt \"{}\"", names[1]), Some(2)).await?;
    same("a filter leads to the next", called(&next), names[2..].to_vec());
    let ids = batch.iter().map(|one| one.id).collect();
    api::customer_api::delete_customer_batch(rest, ids, None).await?;
    same("delete a batch", list(&all, None).await?.len(), 0);

    // the user store
    let (store, here) = (
        &store_api::configuration::Configuration {
            base_path: base,
            oauth_access_token: Some(token),
            ..Default::default()
        },
        "default",
    );
    let body = userstore::UserCreate::new(format!("rust-{run}"));
    let user = store_api::user_api::create_user(store, here, body, None, None, None).await?;
    let user_id = user.id.to_string();
    let body = userstore::GroupCreate::new(format!("Rust {run}"));
    let group = store_api::group_api::create_group(store, here, body, None, None, None).await?;
    let into = userstore::RelatedIds::new(vec![group.id]);
    let joined =
        store_api::user_api::set_user_member_of_groups(store, here, &user_id, into, None, None, None).await?;
    same("a user joins a group", joined.member_of_groups.iter().map(|one| one.id).collect(), vec![group.id]);
    let body = userstore::SetUserImageRequest::new("image/png".to_owned(), PIXEL.to_owned());
    let image =
        store_api::user_image_api::set_user_image(store, here, &user_id, body, None, None, None).await?;
    same("and gets an image", image.user_id, user.id);
    store_api::user_api::delete_batch(store, here, vec![user.id], None).await?;
    let filter = format!("id eq \"{user_id}\"");
    let left = store_api::user_api::get_users(store, here, None, Some(&filter), None, None, None, None, None)
        .await?;
    same("users are deleted", left.len(), 0);
    Ok(())
}
