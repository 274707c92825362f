//! The options of every type of instance.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, one, related, type_id};
use crate::{each, encode, id};

const OPEN_ID_CONNECT: &str = "Authority (mandatory), ClientId (mandatory), ClientSecret S (mandatory), \
    CallbackPath, RequestResources, AdditionalScopes, SignOutUpstream (false), ScimEnabled (false), ScimToken S, ScimTokenId, \
    ScimUniqueIdentifierValues, ScimSubjectClaim (sub), ScimDeleteCascades (false), ScimRateLimit (100), ScimMassChangeLimit (500)";
const ADFS: &str = "Authority (mandatory), ClientId (mandatory), ClientSecret S (mandatory), CallbackPath, RequestResources, AdditionalScopes";
const OTHERS: &str = "ClientId (mandatory), ClientSecret S (mandatory), CallbackPath, AdditionalScopes";
const EMAIL: &str = "EMailSenderAddress, MailServerConfig S, CodeLength (6), CodeLifetime (00:05:00), MaxAttempts (5), ResendInterval (00:00:30)";
const SMS: &str = "GatewayUrl, GatewayToken S, CodeLength (6), CodeLifetime (00:05:00), MaxAttempts (5), ResendInterval (00:00:30)";
const TOTP: &str = "Digits (6), Period (00:00:30), Algorithm (SHA1), Issuer";

/// The resource, the type, and the row of the table. UserStore and Tenant are in `option.rs`.
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

/// Text, valid JSON and no number: a valid value of every mandatory or secret option.
const SAMPLE: &str = r#"{"Host":"kept.example.com"}"#;

/// A valid value of a mandatory option.
fn sample_value(name: &str) -> &'static str {
    if name == "Authority" { "https://kept.example.com" } else { SAMPLE }
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

/// dataType and editorType follow the form of the default. Without a default there are none.
fn hints(default: &str) -> Option<(&'static str, &'static str)> {
    match default {
        "" => None,
        "true" | "false" => Some(("Boolean", "Checkbox")),
        _ if default.bytes().all(|byte| byte.is_ascii_digit()) => Some(("Integer", "Number")),
        _ if default.contains(':') => Some(("TimeSpan", "Duration")),
        _ => Some(("String", "Text")),
    }
}

/// Creates an instance named after its type.
async fn create(world: &World, resource: &str, kind: &str) -> Value {
    let type_id = type_id(world, kind).await;
    world.make(resource, json!({ "name": kind, "idpTypeId": type_id })).await
}

/// The options of an instance, read at `/Option`.
async fn options(client: &Client, resource: &str, instance: &Value) -> Value {
    let filter = encode(&format!("applyTo{resource}Id eq \"{}\"", id(instance)));
    client.get(&format!("{BASE}/Option?filter={filter}")).await.is(200).json()
}

/// The option of this name.
fn named<'a>(options: &'a Value, name: &str) -> &'a Value {
    let option = options.as_array().unwrap().iter().find(|option| option["name"] == name);
    option.unwrap_or_else(|| panic!("{name}"))
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
            let created = create(&world, resource, kind).await;
            assert_eq!(created["hasConfigurationError"], row.iter().any(|entry| entry.is_mandatory), "{kind}");
            let own = options(&world.admin, resource, &created).await;
            let mut expected: Vec<&str> = row.iter().map(|entry| entry.name).collect();
            expected.sort_unstable();
            for shown in [&own, &created["options"]] {
                let mut names = each(shown, "name");
                names.sort_unstable();
                assert_eq!(names, expected, "{kind}");
            }
            for entry in &row {
                let at = format!("{kind} {}", entry.name);
                let option = named(&own, entry.name);
                assert_eq!(option["value"], entry.default, "{at}");
                assert_eq!(option["hasConfigurationError"], entry.is_mandatory, "{at}");
                assert_eq!(option[format!("applyTo{resource}Id")], created["id"], "{at}");
                if let Some((data_type, editor_type)) = hints(entry.default) {
                    assert_eq!(option["dataType"], data_type, "{at}");
                    assert_eq!(option["editorType"], editor_type, "{at}");
                }
                let nested = &named(&created["options"], entry.name)["value"];
                // an empty secret reveals nothing
                assert!(*nested == entry.default || (entry.is_secret && nested.is_null()), "{at}: {nested}");
            }
        }
    }

    async fn an_empty_mandatory_option_is_a_configuration_error(world: World) {
        for (resource, kind, row) in CATALOGUE {
            let created = create(&world, resource, kind).await;
            let path = one(resource, &created);
            let has_error =
                async || world.admin.get(&path).await.is(200).json()["hasConfigurationError"].clone();
            let mandatory: Vec<Entry> = entries(row).into_iter().filter(|entry| entry.is_mandatory).collect();
            for entry in &mandatory {
                assert_eq!(has_error().await, true, "{kind}");
                let given = set(&world, named(&created["options"], entry.name), sample_value(entry.name)).await;
                assert_eq!(given["hasConfigurationError"], false, "{kind} {}", entry.name);
            }
            assert_eq!(has_error().await, false, "{kind}");
            for entry in &mandatory {
                let option = named(&created["options"], entry.name);
                let emptied = set(&world, option, "").await;
                assert_eq!(emptied["hasConfigurationError"], true, "{kind} {}", entry.name);
                assert_eq!(has_error().await, true, "{kind} {}", entry.name);
                set(&world, option, sample_value(entry.name)).await;
                assert_eq!(has_error().await, false, "{kind} {}", entry.name);
            }
            // a deleted option has its default, which is empty
            for entry in &mandatory {
                world.admin.delete(&one("Option", named(&created["options"], entry.name))).await.expect(204);
                assert_eq!(has_error().await, true, "{kind} {}", entry.name);
                let target = format!("applyTo{resource}Id");
                world.make("Option", json!({ "name": entry.name, "value": sample_value(entry.name), target: created["id"] })).await;
                assert_eq!(has_error().await, false, "{kind} {}", entry.name);
            }
        }
    }

    /// The value of a secret is readable at `/Option` by who may write it, and null where options are
    /// nested.
    async fn secrets_are_shown_at_the_option_resource_only(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        for (resource, kind, row) in CATALOGUE {
            let row = entries(row);
            let created = create(&world, resource, kind).await;
            let path = one(resource, &created);
            world.admin.post(&format!("{path}/tenants"), related(&[&tenant])).await.expect(202);
            for entry in &row {
                let given = set(&world, named(&created["options"], entry.name), SAMPLE).await;
                assert_eq!(given["value"], SAMPLE, "{kind} {}", entry.name);
            }
            for (client, may_write) in [(&world.admin, true), (&near, true), (&low, false)] {
                let own = options(client, resource, &created).await;
                let instance = client.get(&path).await.is(200).json();
                let listed = client.get(&format!("{BASE}/{resource}")).await.is(200).json();
                assert!(listed.as_array().unwrap().contains(&instance), "{kind}");
                for entry in &row {
                    let at = format!("{kind} {}, by who may write it: {may_write}", entry.name);
                    let expected = if entry.is_secret && !may_write { Value::Null } else { json!(SAMPLE) };
                    assert_eq!(named(&own, entry.name)["value"], expected, "{at}");
                    let nested = if entry.is_secret { Value::Null } else { json!(SAMPLE) };
                    assert_eq!(named(&instance["options"], entry.name)["value"], nested, "{at}, nested");
                }
            }
        }
    }
}
