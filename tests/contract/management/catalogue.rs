//! The options of every type of instance, as section 5 of the decisions lists them.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{each, id, list::encode};

const OPEN_ID_CONNECT: &str = "Authority (mandatory), ClientId (mandatory), ClientSecret S (mandatory), \
    CallbackPath, RequestResources, AdditionalScopes, SignOutUpstream (false), ScimEnabled (false), ScimToken S, ScimTokenId, \
    ScimUniqueIdentifierValues, ScimSubjectClaim (sub), ScimDeleteCascades (false), ScimRateLimit (100), ScimMassChangeLimit (500)";
const ADFS: &str = "Authority (mandatory), ClientId (mandatory), ClientSecret S (mandatory), CallbackPath, RequestResources, AdditionalScopes";
const OTHERS: &str = "ClientId (mandatory), ClientSecret S (mandatory), CallbackPath, AdditionalScopes";
const EMAIL: &str = "EMailSenderAddress, MailServerConfig S, CodeLength (6), CodeLifetime (00:05:00), MaxAttempts (5), ResendInterval (00:00:30)";
const SMS: &str = "GatewayUrl, GatewayToken S, CodeLength (6), CodeLifetime (00:05:00), MaxAttempts (5), ResendInterval (00:00:30)";
const TOTP: &str = "Digits (6), Period (00:00:30), Algorithm (SHA1), Issuer";

/// What has options, its type, and the row of the table. UserStore and Tenant are in `option.rs`.
const CATALOGUE: [(&str, &str, &str); 9] = [
    ("IdpInstance", "OpenIdConnect", OPEN_ID_CONNECT),
    ("IdpInstance", "AdfsOAuth", ADFS),
    ("IdpInstance", "Microsoft", OTHERS),
    ("IdpInstance", "Google", OTHERS),
    ("IdpInstance", "Facebook", OTHERS),
    ("IdpInstance", "Twitter", OTHERS),
    ("MfaInstance", "email", EMAIL),
    ("MfaInstance", "sms", SMS),
    ("MfaInstance", "totp", TOTP),
];

/// A value that is text, a JSON object and no number: one that is good for whatever is mandatory or
/// secret.
const KEPT: &str = r#"{"Host":"kept.example.com"}"#;

/// A right value of a mandatory option.
fn kept(name: &str) -> &'static str {
    if name == "Authority" { "https://kept.example.com" } else { KEPT }
}

/// An option of a row.
struct Entry {
    name: &'static str,
    default: &'static str,
    is_mandatory: bool,
    is_secret: bool,
}

/// The options of a row: a name, `S` where it is a secret, its default or `mandatory` in brackets.
fn entries(row: &'static str) -> Vec<Entry> {
    let read = |entry: &'static str| {
        let (name, word) = entry.split_once(" (").unwrap_or((entry, ""));
        let word = word.trim_end_matches(')');
        Entry {
            name: name.trim_end_matches(" S"),
            default: if word == "mandatory" { "" } else { word },
            is_mandatory: word == "mandatory",
            is_secret: name.ends_with(" S"),
        }
    };
    row.split(", ").map(read).collect()
}

/// dataType and editorType follow the default's form. From none nothing follows.
fn hints(default: &str) -> Option<(&'static str, &'static str)> {
    match default {
        "" => None,
        "true" | "false" => Some(("Boolean", "Checkbox")),
        _ if default.bytes().all(|byte| byte.is_ascii_digit()) => Some(("Integer", "Number")),
        _ if default.contains(':') => Some(("TimeSpan", "Duration")),
        _ => Some(("String", "Text")),
    }
}

/// Makes an instance of a type, which is called like it.
async fn make(world: &World, resource: &str, kind: &str) -> Value {
    let type_id = type_id(world, kind).await;
    world.make(resource, json!({ "name": kind, "idpTypeId": type_id })).await
}

/// The options of an instance, at their own resource.
async fn options(client: &Client, resource: &str, instance: &Value) -> Value {
    let filter = encode(&format!("applyTo{resource}Id eq \"{}\"", id(instance)));
    client.get(&format!("{BASE}/Option?filter={filter}")).await.is(200).json()
}

/// The option of this name.
fn named<'a>(options: &'a Value, name: &str) -> &'a Value {
    let found = options.as_array().unwrap().iter().find(|option| option["name"] == name);
    found.unwrap_or_else(|| panic!("{name}"))
}

async fn set(world: &World, option: &Value, value: &str) -> Value {
    let path = one("Option", option);
    let now = world.admin.get(&path).await.is(200).json();
    let change = json!({ "value": value, "concurrencyToken": now["concurrencyToken"] });
    world.admin.patch(&path, change).await.is(202).json()
}

on_both_engines! {
    async fn an_instance_has_the_options_of_its_type(world: World) {
        let types = world.all("IdpType").await;
        let mut seeded = each(&types, "name");
        seeded.sort_unstable();
        let mut listed: Vec<&str> = CATALOGUE.iter().map(|(_, kind, _)| *kind).chain(["UserStore"]).collect();
        listed.sort_unstable();
        assert_eq!(seeded, listed);
        for (resource, kind, row) in CATALOGUE {
            let row = entries(row);
            let made = make(&world, resource, kind).await;
            assert_eq!(made["hasConfigurationError"], row.iter().any(|entry| entry.is_mandatory), "{kind}");
            let own = options(&world.admin, resource, &made).await;
            let mut wanted: Vec<&str> = row.iter().map(|entry| entry.name).collect();
            wanted.sort_unstable();
            for shown in [&own, &made["options"]] {
                let mut names = each(shown, "name");
                names.sort_unstable();
                assert_eq!(names, wanted, "{kind}");
            }
            for entry in &row {
                let at = format!("{kind} {}", entry.name);
                let option = named(&own, entry.name);
                assert_eq!(option["value"], entry.default, "{at}");
                assert_eq!(option["hasConfigurationError"], entry.is_mandatory, "{at}");
                assert_eq!(option[format!("applyTo{resource}Id")], made["id"], "{at}");
                if let Some((data_type, editor_type)) = hints(entry.default) {
                    assert_eq!(option["dataType"], data_type, "{at}");
                    assert_eq!(option["editorType"], editor_type, "{at}");
                }
                let nested = &named(&made["options"], entry.name)["value"];
                // an empty secret tells nothing
                assert!(*nested == entry.default || (entry.is_secret && nested.is_null()), "{at}: {nested}");
            }
        }
    }

    async fn what_is_mandatory_is_an_error_while_it_is_empty(world: World) {
        for (resource, kind, row) in CATALOGUE {
            let made = make(&world, resource, kind).await;
            let path = one(resource, &made);
            let is_wrong =
                async || world.admin.get(&path).await.is(200).json()["hasConfigurationError"].clone();
            let mandatory: Vec<Entry> = entries(row).into_iter().filter(|entry| entry.is_mandatory).collect();
            for entry in &mandatory {
                assert_eq!(is_wrong().await, true, "{kind}");
                let given = set(&world, named(&made["options"], entry.name), kept(entry.name)).await;
                assert_eq!(given["hasConfigurationError"], false, "{kind} {}", entry.name);
            }
            assert_eq!(is_wrong().await, false, "{kind}");
            for entry in &mandatory {
                let option = named(&made["options"], entry.name);
                let emptied = set(&world, option, "").await;
                assert_eq!(emptied["hasConfigurationError"], true, "{kind} {}", entry.name);
                assert_eq!(is_wrong().await, true, "{kind} {}", entry.name);
                set(&world, option, kept(entry.name)).await;
                assert_eq!(is_wrong().await, false, "{kind} {}", entry.name);
            }
            // one that is deleted falls to its default, which is empty
            for entry in &mandatory {
                world.admin.delete(&one("Option", named(&made["options"], entry.name))).await.expect(204);
                assert_eq!(is_wrong().await, true, "{kind} {}", entry.name);
                let target = format!("applyTo{resource}Id");
                world.make("Option", json!({ "name": entry.name, "value": kept(entry.name), target: made["id"] })).await;
                assert_eq!(is_wrong().await, false, "{kind} {}", entry.name);
            }
        }
    }

    /// The value of a secret is readable at `/Option` by who may write it, and null where options are
    /// nested.
    async fn secrets_are_seen_at_their_own_resource(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        for (resource, kind, row) in CATALOGUE {
            let row = entries(row);
            let made = make(&world, resource, kind).await;
            let path = one(resource, &made);
            world.admin.post(&format!("{path}/tenants"), related(&[&tenant])).await.expect(202);
            for entry in &row {
                let given = set(&world, named(&made["options"], entry.name), KEPT).await;
                assert_eq!(given["value"], KEPT, "{kind} {}", entry.name);
            }
            for (client, may_write) in [(&world.admin, true), (&near, true), (&low, false)] {
                let own = options(client, resource, &made).await;
                let instance = client.get(&path).await.is(200).json();
                let listed = client.get(&format!("{BASE}/{resource}")).await.is(200).json();
                assert!(listed.as_array().unwrap().contains(&instance), "{kind}");
                for entry in &row {
                    let at = format!("{kind} {}, by who may write it: {may_write}", entry.name);
                    let seen = if entry.is_secret && !may_write { Value::Null } else { json!(KEPT) };
                    assert_eq!(named(&own, entry.name)["value"], seen, "{at}");
                    let nested = if entry.is_secret { Value::Null } else { json!(KEPT) };
                    assert_eq!(named(&instance["options"], entry.name)["value"], nested, "{at}, nested");
                }
            }
        }
    }
}
