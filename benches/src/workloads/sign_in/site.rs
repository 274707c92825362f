//! A server that people sign in at, from the view of browsers and apps.

use aws_lc_rs::hmac;
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use crate::{
    browser::{Browser, FinalResponse, encode, form},
    client::Client,
    fault::{Context as _, Result, fault},
    peers::{
        keycloak::{self, CALLBACK, CLIENT},
        oidc_provider::{CLIENT_SECRET, COOKIE_KEY},
    },
    people::{self, Random},
    target::{Engine, Target},
};

const BASE: &str = "/api/management/v2";
/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// An app that people sign in to.
#[derive(Clone, Debug)]
pub struct App {
    /// The paths of the authorization endpoint and of the token endpoint.
    authorize: String,
    token: String,
    id: String,
    /// Its credentials for Basic authentication; a public app has none.
    basic: Option<String>,
}

/// A server with its apps, and the users who sign in there.
pub struct Site {
    /// The server.
    pub target: Target,
    /// A confidential app whose ID tokens are signed by RS256.
    pub usual: App,
    /// A confidential app whose ID tokens are signed by ES256.
    pub elliptic: App,
    /// A public app.
    pub public: App,
    users: u64,
    /// The number of processes that share the users, and the index of this one.
    processes: u64,
    index: u64,
}

/// The index of a client among those of one server.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The client's number, from 0.
    pub number: usize,
    /// How many clients there are.
    pub count: usize,
}

impl App {
    /// An app whose issuer's paths begin like this.
    fn new(issuer: &str, id: &str, secret: Option<&str>) -> Self {
        Self::at((format!("{issuer}/connect/authorize"), format!("{issuer}/connect/token")), id, secret)
    }

    fn at((authorize, token): (String, String), id: &str, secret: Option<&str>) -> Self {
        let basic = secret.map(|secret| BASE64_STANDARD.encode(format!("{}:{}", encode(id), encode(secret))));
        Self { authorize, token, id: id.to_owned(), basic }
    }

    /// The path of an authorization request, with these parameters in addition to the common ones.
    pub fn request(&self, additional: &[(&str, &str)]) -> String {
        let common = [("client_id", self.id.as_str()), ("redirect_uri", CALLBACK), ("state", "s-1")];
        format!("{}?{}", self.authorize, form(&[&common, additional].concat()))
    }

    /// The path of an authorization request for a code.
    pub fn code_request(&self, scope: &str) -> String {
        self.request(&[
            ("response_type", "code"),
            ("scope", scope),
            ("nonce", "n-1"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ])
    }
}

impl Site {
    /// A Chancery server; creates the apps.
    pub async fn chancery(target: Target, users: u64) -> Result<Self> {
        let (tenant, instance) = (
            find_by_name(&target, "Tenant", "Default").await?,
            find_by_name(&target, "IdpInstance", "default").await?,
        );
        let mut apps = Vec::new();
        for (name, is_public) in [("usual", false), ("elliptic", false), ("public", true)] {
            let body = json!({ "name": name, "isPublic": is_public, "allowedResponseTypes": "code,none" });
            let app = post(&target, "ClientApp", &body).await?;
            let id = text(&app, "id").to_owned();
            post(&target, "ClientAppRedirectUri", &json!({ "clientAppId": id, "uri": CALLBACK })).await?;
            set_related(&target, &format!("ClientApp/{id}/tenants"), &[text(&tenant, "id")]).await?;
            let secret = if is_public {
                None
            } else {
                Some(post(&target, "ClientAppSecret", &json!({ "clientAppId": id })).await?)
            };
            // the installation signs ID tokens by RS256, the tenant by its certificate
            let issuer =
                if name == "elliptic" { format!("/t/{}", text(&tenant, "id")) } else { String::new() };
            apps.push(App::new(&issuer, &id, secret.as_ref().map(|secret| text(secret, "secret"))));
        }
        let ids: Vec<&str> = apps.iter().map(|app| app.id.as_str()).collect();
        set_related(&target, &format!("IdpInstance/{}/clientapps", text(&instance, "id")), &ids).await?;
        post(&target, "CertStore", &certificate(text(&tenant, "id"))?).await?;
        let [usual, elliptic, public] =
            <[App; 3]>::try_from(apps).map_err(|_| fault("there are other apps than three"))?;
        Ok(Self { target, usual, elliptic, public, users, processes: 1, index: 0 })
    }

    /// Lets the usual app receive the groups of people.
    pub async fn include_groups(&self) -> Result<()> {
        let path = format!("{BASE}/ClientApp/{}", self.usual.id);
        let app: Value = serde_json::from_slice(&self.target.call("GET", &path, b"", 200).await?)?;
        let body = json!({ "includeGroupsClaims": true, "concurrencyToken": text(&app, "concurrencyToken") });
        self.target.call("PATCH", &path, body.to_string().as_bytes(), 202).await.map(drop)
    }

    /// One process of oidc-provider, which has its apps from the start.
    pub fn oidc_provider(target: Target, users: u64, (index, processes): (u64, u64)) -> Self {
        let app = |name, secret| App::new("", name, secret);
        let (usual, elliptic) = (app("default", Some(CLIENT_SECRET)), app("elliptic", Some(CLIENT_SECRET)));
        Self { target, usual, elliptic, public: app("public", None), users, processes, index }
    }

    /// Keycloak, of whose users the first ones can sign in. Its one app has ID tokens signed by ES256.
    pub fn keycloak(target: Target, users: u64) -> Self {
        let paths = (keycloak::AUTHORIZATION.to_owned(), keycloak::TOKEN.to_owned());
        let app = App::at(paths, CLIENT.0, Some(CLIENT.1));
        Self { target, usual: app.clone(), elliptic: app.clone(), public: app, users, processes: 1, index: 0 }
    }

    /// Opens an app's request in a new browser, and signs in by name and password; the answer to the form.
    pub async fn sign_in(&self, client: &mut Client, request: &str, user: u64) -> Result<FinalResponse> {
        let mut browser = Browser::new(self.target.address);
        let page = browser.open(client, request).await?;
        let name = people::login_name(user);
        match page.filled(&[("username", &name), ("password", people::PASSWORD)]) {
            Some((action, form)) => browser.post(client, &action, &form).await,
            None => Err(fault(format!("no form: {}", page.describe()))),
        }
    }

    /// A random user that no other client of this server uses.
    pub fn user(&self, slot: Slot, random: &mut Random) -> u64 {
        let (number, count) = (slot.number as u64, slot.count as u64);
        let share_size = (self.users - self.index).div_ceil(self.processes);
        let choice = random.below(share_size.saturating_sub(number).div_ceil(count).max(1));
        (number + count * choice).min(share_size - 1) * self.processes + self.index
    }

    /// Gives a browser the session of a user.
    pub fn set_session(&self, browser: &mut Browser, user: u64) {
        let value = people::session_cookie(user);
        if self.target.engine == Engine::OidcProvider {
            let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, COOKIE_KEY.as_bytes());
            let signature = hmac::sign(&key, format!("_session={value}").as_bytes());
            browser.set("_session", &value);
            browser.set("_session.sig", &BASE64_URL_SAFE_NO_PAD.encode(signature));
        } else {
            browser.set("chancery-session", &value);
        }
    }

    /// Sends an app's request for tokens; returns status and body.
    async fn token(&self, client: &mut Client, app: &App, fields: &[(&str, &str)]) -> Result<(u16, Vec<u8>)> {
        let client_id = [("client_id", app.id.as_str())];
        let form = if app.basic.is_some() { form(fields) } else { form(&[&client_id, fields].concat()) };
        let basic = app.basic.as_ref().map(|basic| format!("authorization: Basic {basic}\r\n"));
        let request = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\n{}content-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\n\r\n{form}",
            app.token,
            self.target.address,
            basic.unwrap_or_default(),
            form.len(),
        );
        client.fetch(request.as_bytes()).await
    }

    /// Redeems a code for tokens.
    pub async fn redeem(&self, client: &mut Client, app: &App, code: &str) -> Result<(u16, Vec<u8>)> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        self.token(client, app, &fields).await
    }

    /// Redeems a refresh token for tokens.
    pub async fn refresh(&self, client: &mut Client, app: &App, token: &str) -> Result<(u16, Vec<u8>)> {
        self.token(client, app, &[("grant_type", "refresh_token"), ("refresh_token", token)]).await
    }
}

/// A certificate with which a tenant signs by ES256, as it is uploaded.
fn certificate(tenant: &str) -> Result<Value> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("a key")?;
    let certificate = CertificateParams::new(vec![])
        .context("a certificate")?
        .self_signed(&key)
        .context("a certificate")?;
    Ok(json!({
        "name": "signing", "certificateStorageFormat": "Pem", "certType": "OidcTokenSigning", "applyToTenantId": tenant,
        "certificateInput": { "format": "Pem", "data": certificate.pem(), "privateKey": key.serialize_pem() },
    }))
}

pub fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

async fn post(target: &Target, resource: &str, body: &Value) -> Result<Value> {
    let path = format!("{BASE}/{resource}");
    Ok(serde_json::from_slice(&target.call("POST", &path, body.to_string().as_bytes(), 201).await?)?)
}

async fn set_related(target: &Target, relation: &str, ids: &[&str]) -> Result<()> {
    let body = json!({ "relatedIds": ids }).to_string();
    target.call("PUT", &format!("{BASE}/{relation}"), body.as_bytes(), 202).await.map(drop)
}

async fn find_by_name(target: &Target, resource: &str, name: &str) -> Result<Value> {
    let items: Value =
        serde_json::from_slice(&target.call("GET", &format!("{BASE}/{resource}"), b"", 200).await?)?;
    let item = items.as_array().into_iter().flatten().find(|item| text(item, "name") == name);
    item.cloned().ok_or_else(|| fault(format!("there is no {resource} named {name}")))
}
