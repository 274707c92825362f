//! Fixtures of the tests that walk through all resources: the rows that their bodies refer to.

use chancery_testkit::Client;
use serde_json::{Value, json};

use crate::{id, pattern::rows, resources::BASE};

/// Number of fixtures of each resource: roles and assignments need a tenant each, configurations a
/// client app, and relations need two more than their own.
const COUNTS: [(&str, usize); 6] = [
    ("Tenant", 7),
    ("ClientApp", 7),
    ("IdpInstance", 3),
    ("MfaInstance", 3),
    ("CertStore", 3),
    ("ClaimRule", 3),
];

/// The types of the fixture instances. They are global.
const TYPES: [&str; 2] = ["Google", "totp"];

/// The values of path parameters.
const PARAMETERS: [(&str, &str); 5] = [
    ("tenantId", "{Tenant 1}"),
    ("refId", "{Tenant 1}"),
    ("clientAppId", "{ClientApp 1}"),
    ("idpInstanceId", "{IdpInstance 1}"),
    ("idpInstance", "{IdpInstance 1}"),
];

const JWKS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

/// Placeholders of bodies and paths, in braces, with their values.
pub struct Fixtures(Vec<(String, String)>);

impl Fixtures {
    /// Adds a placeholder and its value.
    pub fn add(&mut self, name: &str, text: &str) {
        self.0.push((format!("{{{name}}}"), text.to_owned()));
    }

    /// A text with the number and the placeholders substituted.
    pub fn text(&self, text: &str, number: usize) -> String {
        let text = text.replace('%', &number.to_string());
        self.0.iter().fold(text, |text, (name, value)| text.replace(name.as_str(), value))
    }

    /// A body with the number and the placeholders substituted.
    pub fn fill(&self, body: &Value, number: usize) -> Value {
        match body {
            Value::String(text) => Value::String(self.text(text, number)),
            Value::Object(members) => Value::Object(
                members.iter().map(|(name, value)| (name.clone(), self.fill(value, number))).collect(),
            ),
            other => other.clone(),
        }
    }

    /// The address of the row with this key.
    pub fn address(&self, path: &str, key: &str) -> String {
        let key = format!("/{}", key.trim_start_matches('/'));
        format!("{BASE}{}", self.text(path, 0).replace("/{id}", &key).replace("/{key}", &key))
    }

    /// The ids of all fixtures that are not global.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|(name, _)| !TYPES.contains(&name.trim_matches(['{', '}'])))
            .map(|(_, text)| text.as_str())
            .filter(|text| uuid::Uuid::try_parse(text).is_ok())
    }
}

async fn all(admin: &Client, resource: &str) -> Value {
    admin.get(&format!("{BASE}/{resource}")).await.is(200).json()
}

/// Creates the fixtures that the bodies of the rows refer to, all in the subscription `Default`.
pub async fn create_fixtures(admin: &Client) -> Fixtures {
    let mut fixtures = Fixtures(Vec::new());
    for (name, resource) in [("customerId", "Customer"), ("subscriptionId", "Subscription")] {
        fixtures.add(name, id(&all(admin, resource).await[0]));
    }
    let types = all(admin, "IdpType").await;
    for name in TYPES {
        fixtures.add(name, id(types.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()));
    }
    let (certificate, private_key) = certificate();
    fixtures.add("certificate", &certificate);
    fixtures.add("private key", &private_key);
    fixtures.add("jwks", JWKS);
    create_principals(admin, &mut fixtures).await;
    let rows = rows();
    for (resource, count) in COUNTS {
        let row = rows.iter().find(|row| row.resource == resource).unwrap();
        for number in 1..=count {
            // numbers that the walks do not use
            let body = fixtures.fill(&row.create, 10 + number);
            let created = admin.post(&format!("{BASE}/{resource}"), body).await.is(201).json();
            fixtures.add(&format!("{resource} {number}"), id(&created));
        }
    }
    // the walks create this option again
    let brands = all(admin, "Option?filter=name%20eq%20%22BrandName%22").await;
    for brand in brands.as_array().unwrap() {
        if fixtures.ids().any(|id| brand["applyToTenantId"] == id) {
            admin.delete(&format!("{BASE}/Option/{}", id(brand))).await.expect(204);
        }
    }
    for (name, value) in PARAMETERS {
        let text = fixtures.text(value, 0);
        fixtures.add(name, &text);
    }
    fixtures
}

fn certificate() -> (String, String) {
    let generated = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
    (generated.cert.pem(), generated.signing_key.serialize_pem())
}

/// Platform users and groups.
async fn create_principals(admin: &Client, fixtures: &mut Fixtures) {
    const STORE: &str = "/api/userstore/v2/default/administration";
    for name in ["ada", "bob", "eve"] {
        admin.post(&format!("{STORE}/User"), json!({ "loginName": name })).await.expect(201);
        admin.post(&format!("{STORE}/Group"), json!({ "name": name })).await.expect(201);
    }
    for kind in ["User", "Group"] {
        let path = format!("{STORE}/{kind}/synchronize");
        admin.send(http::Method::POST, &path, &[], Vec::new()).await.expect(200);
        let all = all(admin, &format!("Application{kind}")).await;
        for (index, one) in all.as_array().unwrap().iter().enumerate() {
            fixtures.add(&format!("Application{kind} {}", index + 1), id(one));
        }
    }
}
