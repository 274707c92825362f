//! People sign in to an app: the authorization code flow from the view of a browser and a client app.

mod administration;
pub mod administrator;
mod app_settings;
mod appearance;
mod attacks;
mod below_a_path;
pub mod browser;
mod claim_rules;
mod claims_equal;
mod claims_requested;
mod code;
mod code_options;
mod confirmation;
mod consent;
mod dead_ends;
mod device;
mod event;
mod explain;
mod external;
mod external_administration;
mod external_administrator;
mod external_answers;
mod external_assurance;
mod external_attacks;
mod external_codes;
mod external_groups;
mod external_options;
mod external_page;
mod external_preview;
mod external_replacement;
mod external_rules;
mod external_selection;
mod external_sign_out;
mod external_timeout;
mod external_types;
pub mod fleet;
mod introspection;
mod key_rotation;
mod killed;
mod killed_factor;
mod lifetimes;
mod limits;
mod login;
mod new_password;
mod page_metrics;
mod passkey;
mod password;
mod pending_sign_in;
mod preview;
mod questionnaire;
mod record;
mod refresh;
mod refusal_list;
mod refusal_log;
mod request;
mod reset;
mod revocation;
mod round_trips;
pub mod second_factor;
mod session;
mod setting_effects;
mod sign_out;
mod signed_answers;
mod single_use;
mod sms;
mod stops;
mod tenants;
mod unauthenticated_rows;
mod unsupported_settings;
mod write_costs;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::{Answer, Client, World};
use serde_json::{Value, json};

use self::browser::Browser;
pub use self::refusal_list::create_refusal;
use crate::id;

const BASE: &str = "/api/management/v2";
const CALLBACK: &str = "https://app.example/callback";
const PASSWORD: &str = "four lively grey herons";
/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// An app that people sign in to, with a user of the default store.
pub struct SignInApp {
    app: Value,
    tenant: String,
    secret: String,
    pub user: Value,
}

/// The first element of a list.
async fn first(world: &World, path: &str) -> Value {
    world.admin.get(&format!("{BASE}{path}")).await.is(200).json()[0].clone()
}

/// Sets the rows of a relation.
async fn relate(world: &World, path: &str, ids: &[&str]) {
    world.admin.put(&format!("{BASE}{path}"), json!({ "relatedIds": ids })).await.expect(202);
}

impl SignInApp {
    /// An app with these members, in the default tenant, for the default store.
    async fn with(world: &World, members: Value) -> Self {
        Self::created_by(&world.admin, members).await
    }

    /// The same, created by this administrator.
    async fn created_by(admin: &Client, members: Value) -> Self {
        let first = async |path: &str| admin.get(&format!("{BASE}{path}")).await.is(200).json()[0].clone();
        let create = async |resource: &str, body: Value| {
            admin.post(&format!("{BASE}/{resource}"), body).await.is(201).json()
        };
        let relate = async |path: String, related: &Value| {
            admin.put(&format!("{BASE}{path}"), json!({ "relatedIds": [related["id"]] })).await.expect(202);
        };
        let (tenant, instance) = (first("/Tenant").await, first("/IdpInstance").await);
        let mut body = json!({ "name": "Harbour Ledger" });
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let app = create("ClientApp", body).await;
        relate(format!("/ClientApp/{}/tenants", id(&app)), &tenant).await;
        // the console stays linked: its sessions end with its instance
        let added = json!({ "relatedIds": [app["id"]] });
        admin.post(&format!("{BASE}/IdpInstance/{}/clientapps", id(&instance)), added).await.expect(202);
        for (uri, kind) in [(CALLBACK, "Login"), ("https://app.example/bye", "Logout")] {
            let body = json!({ "clientAppId": app["id"], "uri": uri, "redirectUriType": kind });
            create("ClientAppRedirectUri", body).await;
        }
        let secret = if app["isPublic"] == json!(true) {
            String::new()
        } else {
            let created = create("ClientAppSecret", json!({ "clientAppId": app["id"], "name": "s" })).await;
            created["secret"].as_str().unwrap().to_owned()
        };
        // tests of passkeys enable their enrolment again
        let filter =
            format!("applyToIdpInstanceId eq \"{}\" and name eq \"PasskeyEnrolment\"", id(&instance));
        let option = first(&format!("/Option?filter={}", encode(&filter))).await;
        let off = json!({ "value": "Off", "concurrencyToken": option["concurrencyToken"] });
        admin.patch(&format!("{BASE}/Option/{}", id(&option)), off).await.expect(202);
        let user = json!({
            "loginName": "ann", "firstName": "Ann", "lastName": "Archer", "emailAddress": "ann@example.com",
            "emailAddressConfirmed": true,
        });
        let people = "/api/userstore/v2/default/administration/User";
        let user = admin.post(people, user).await.is(201).json();
        let reset = format!("{people}/{}/password/reset", id(&user));
        admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        Self { tenant: id(&tenant).to_owned(), app, secret, user }
    }

    pub async fn new(world: &World) -> Self {
        Self::with(world, json!({})).await
    }

    /// The URL of an authorization request with these parameters in addition to, or instead of, the usual ones.
    fn request(&self, more: &[(&str, &str)]) -> String {
        let usual = [
            ("client_id", id(&self.app)),
            ("redirect_uri", CALLBACK),
            ("response_type", "code"),
            ("scope", "openid profile email"),
            ("state", "s-1"),
            ("nonce", "n-1"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let usual = usual.into_iter().filter(|(name, _)| !more.iter().any(|(other, _)| other == name));
        let all: Vec<String> = usual
            .chain(more.iter().copied())
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
        format!("/connect/authorize?{}", all.join("&"))
    }

    /// Redeems a code at the token endpoint.
    async fn redeem(&self, world: &World, code: &str, more: &[(&str, &str)]) -> Answer {
        self.redeem_at(&world.anonymous, code, more).await
    }

    /// Redeems a code at the token endpoint of this process.
    async fn redeem_at(&self, caller: &Client, code: &str, more: &[(&str, &str)]) -> Answer {
        caller.ask_for_token(&self.redemption_form(code, more)).await
    }

    /// The form that redeems a code at the token endpoint.
    fn redemption_form(&self, code: &str, more: &[(&str, &str)]) -> String {
        let usual = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
            ("client_id", id(&self.app)),
            ("client_secret", self.secret.as_str()),
        ];
        let usual = usual.into_iter().filter(|(name, _)| !more.iter().any(|(other, _)| other == name));
        form(usual.chain(more.iter().copied()))
    }

    /// Redeems a refresh token at the token endpoint of this process.
    async fn refresh_at(&self, caller: &Client, token: &str) -> Answer {
        caller.ask_for_token(&self.refresh_form(token)).await
    }

    /// The form that redeems a refresh token at the token endpoint.
    fn refresh_form(&self, token: &str) -> String {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("client_id", id(&self.app)),
            ("client_secret", self.secret.as_str()),
        ];
        form(fields.into_iter())
    }

    /// Signs in in a new browser; returns the browser and the redirect to the app.
    async fn sign_in(&self, world: &World) -> (Browser, String) {
        let mut browser = Browser::new(world);
        let page = browser.open(&self.request(&[])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        (browser, answer)
    }
}

/// Creates a session, a grant, a consent, a second factor and a record of a person who signs in.
pub async fn create_sign_in_data(world: &World) {
    let home = SignInApp::with(world, json!({ "accessGrantConsent": "External" })).await;
    world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
    let filter = encode("emailAddress eq \"ann@example.com\"");
    let person = first(world, &format!("/ApplicationUser?filter={filter}")).await;
    let consent = json!({ "clientAppId": home.app["id"], "platformUserId": person["id"], "scope": "openid profile email" });
    world.make("SignInConsent", consent).await;
    let (_, answer) = home.sign_in(world).await;
    home.redeem(world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
    second_factor::require_factor(world, &home, "totp").await;
    second_factor::enrol(world, &home).await;
}

/// Sets an option of the app's tenant.
async fn tenant_option(world: &World, home: &SignInApp, name: &str, value: &str) {
    let filter = format!("applyToTenantId eq \"{}\" and name eq \"{name}\"", home.tenant);
    let option = first(world, &format!("/Option?filter={}", encode(&filter))).await;
    let body = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
    world.admin.patch(&format!("{BASE}/Option/{}", id(&option)), body).await.expect(202);
}

/// Updates members of a resource.
async fn change(world: &World, path: &str, members: Value) {
    let path = format!("{BASE}{path}");
    let now = world.admin.get(&path).await.is(200).json();
    let mut body = json!({ "concurrencyToken": now["concurrencyToken"] });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    world.admin.patch(&path, body).await.expect(202);
}

/// The target of the link with this text.
pub fn link(page: &browser::Page, words: &str) -> String {
    let at = page.html.find(words).unwrap_or_else(|| panic!("no {words} in {}", page.html));
    let from = page.html[..at].rfind("href=\"").unwrap() + 6;
    page.html[from..].split('"').next().unwrap().replace("&amp;", "&")
}

/// Percent-encodes a value of a query or form.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A form of these fields, without those that are empty.
fn form<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let all = fields.filter(|(_, value)| !value.is_empty());
    all.map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

/// A parameter of a URL.
fn parameter(address: &str, name: &str) -> Option<String> {
    let query = address.split_once(['?', '#'])?.1;
    let pair = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")))?;
    Some(pair.replace("%20", " ").replace("%2F", "/").replace("%3A", ":"))
}

/// The claims of a JWT, its signature not verified.
fn claims(token: &Value) -> Value {
    let part = token.as_str().unwrap().split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}
