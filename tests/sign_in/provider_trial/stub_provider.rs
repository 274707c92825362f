//! A stub identity provider on this machine, with faults as a test requires.

mod social;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree},
    digest::{SHA256, digest},
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_testkit::World;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The parameters of a query or a form.
pub fn fields(text: &str) -> HashMap<String, String> {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            rest = after;
            match first {
                b'+' => bytes.push(b' '),
                b'%' => {
                    bytes.push(u8::from_str_radix(str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
                    rest = &after[2..];
                }
                other => bytes.push(*other),
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// The behaviour of the provider: replacements of its correct responses.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub struct Behaviour {
    /// Members of the discovery document; null removes one.
    pub document: Value,
    /// Claims of the ID token.
    pub claims: Value,
    /// Members of its header. By `alg` `none` it is not signed, by `HS256` by the secret.
    pub header: Value,
    /// The `use` of the published key.
    pub key_use: Option<&'static str>,
    /// Whether another key signs.
    pub signs_by_another: bool,
    /// Whether that key is published instead of the first, as `k2`.
    pub publishes_another: bool,
    /// The response of the token endpoint.
    pub tokens: Option<(u16, Value)>,
    /// The response of UserInfo.
    pub user_info: Value,
    /// The public key of a certificate that ID tokens are encrypted to.
    pub encrypted_to: Option<Vec<u8>>,
    /// The public key for the client's assertions, instead of its secret.
    pub asserted_by: Option<Vec<u8>>,
    /// The access token.
    pub access_token: Option<String>,
    /// Whether no request is answered.
    pub hangs: bool,
    /// The path at which no request is answered.
    pub hangs_at: Option<&'static str>,
    /// A path that redirects, with its status and target.
    pub redirects: Option<(&'static str, u16, String)>,
    /// Whether a code is redeemed by any verifier.
    pub ignores_pkce: bool,
    /// Whether each connection is closed at once.
    pub is_down: bool,
    /// Members of the profile, for providers without ID tokens.
    pub profile: Value,
    /// The parameters of the last authorization request.
    pub request: HashMap<String, String>,
}

/// The provider.
pub struct StubProvider {
    /// Its issuer.
    pub issuer: String,
    key: EcdsaKeyPair,
    other: EcdsaKeyPair,
    behaviour: Mutex<Behaviour>,
    connections: AtomicUsize,
    held: AtomicUsize,
}

/// Path and query of a request.
fn path_of(head: &str) -> (&str, &str) {
    let target = head.split(' ').nth(1).unwrap();
    target.split_once('?').unwrap_or((target, ""))
}

fn with(mut base: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        base[name] = value.clone();
    }
    base
}

impl Behaviour {
    /// `iss` of the authorization response: that of the discovery document.
    fn iss_parameter(&self, issuer: &str) -> String {
        if self.document["authorization_response_iss_parameter_supported"] == false {
            return String::new();
        }
        format!("&iss={}", self.document["issuer"].as_str().unwrap_or(issuer))
    }
}

impl StubProvider {
    pub async fn start() -> Arc<Self> {
        Self::start_on("127.0.0.1").await
    }

    /// A provider on this address.
    pub async fn start_on(address: &str) -> Arc<Self> {
        Self::serve_at(TcpListener::bind((address, 0)).await.unwrap())
    }

    /// A provider in a network that [`allow_loopback`](super::allow_loopback) does not permit.
    pub async fn start_out_of_reach() -> Arc<Self> {
        Self::start_on("127.0.0.2").await
    }

    /// A URL of this path, by https. Nobody answers there, but connections count.
    pub fn secure_url(&self, path: &str) -> String {
        format!("{}{path}", self.issuer.replace("http:", "https:"))
    }

    /// A provider with fixed public addresses, instead of Google, Microsoft and others.
    pub fn in_place_of_the_public_ones(world: &World) -> Arc<Self> {
        let listener = world.take_public_providers();
        listener.set_nonblocking(true).unwrap();
        Self::serve_at(TcpListener::from_std(listener).unwrap())
    }

    fn serve_at(listener: TcpListener) -> Arc<Self> {
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let [key, other] =
            [(); 2].map(|()| EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap());
        let provider = Arc::new(Self {
            issuer,
            key,
            other,
            behaviour: Mutex::default(),
            connections: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&provider);
        chancery_testkit::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let provider = Arc::clone(&serving);
                chancery_testkit::spawn(async move { provider.serve(stream).await });
            }
        });
        provider
    }

    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the behaviour from now on.
    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour() = behaviour;
    }

    /// Signs in at the address of a trial; returns the query of the callback.
    pub fn sign_in(&self, url: &str) -> String {
        let (before, query) = url.split_once('?').unwrap();
        assert!(before.starts_with(&format!("{}/", self.issuer)), "{url}");
        let request = fields(query);
        assert_eq!(
            (request["response_type"].as_str(), request["code_challenge_method"].as_str()),
            ("code", "S256")
        );
        let mut behaviour = self.behaviour();
        // providers without ID tokens send no `iss`, either
        let iss =
            if request.contains_key("nonce") { behaviour.iss_parameter(&self.issuer) } else { String::new() };
        let query = format!("code=the+code&state={}{iss}", request["state"]);
        behaviour.request = request;
        drop(behaviour);
        query
    }

    /// A parameter of the last authorization request.
    pub fn request_parameter(&self, name: &str) -> String {
        self.behaviour().request[name].clone()
    }

    /// Whether the last authorization request had the parameter.
    pub fn has_request_parameter(&self, name: &str) -> bool {
        self.behaviour().request.contains_key(name)
    }

    /// The connections that were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The number of requests that it left without an answer.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (mut read, mut chunk) = (Vec::new(), [0; 8192]);
        let (hangs, is_down) = {
            let behaviour = self.behaviour();
            (behaviour.hangs, behaviour.is_down)
        };
        if is_down {
            return None;
        }
        while hangs && stream.read(&mut chunk).await.ok()? > 0 {}
        let (head, body) = loop {
            let text = String::from_utf8_lossy(&read).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
                });
                if body.len() >= length.unwrap_or(0) {
                    break (head.to_owned(), body.to_owned());
                }
            }
            match stream.read(&mut chunk).await.ok()? {
                0 => return None,
                count => read.extend_from_slice(&chunk[..count]),
            }
        };
        if self.behaviour().hangs_at == Some(path_of(&head).0) {
            self.held.fetch_add(1, Ordering::Relaxed);
            while stream.read(&mut chunk).await.ok()? > 0 {}
            return None;
        }
        let redirect = self.behaviour().redirects.clone().filter(|(path, ..)| *path == path_of(&head).0);
        let (location, (status, body)) = match redirect {
            Some((_, status, to)) => (format!("location: {to}\r\n"), (status, json!({}))),
            None => (String::new(), self.answer(&head, &body)),
        };
        let text = if let Value::String(text) = body { text } else { body.to_string() };
        let answer = format!(
            "HTTP/1.1 {status} X\r\n{location}connection: close\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes()).await.ok()
    }

    fn answer(&self, head: &str, body: &str) -> (u16, Value) {
        let behaviour = self.behaviour();
        let (path, query) = path_of(head);
        if let Some(answer) = social::answer(&behaviour, (path, query), head, body) {
            return answer;
        }
        match path {
            "/.well-known/openid-configuration" | "/common/v2.0/.well-known/openid-configuration" => {
                let at = |path: &str| format!("{}/{path}", self.issuer);
                let document = json!({
                    "issuer": self.issuer, "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
                    "jwks_uri": at("keys"), "userinfo_endpoint": at("userinfo"),
                    "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic", "private_key_jwt"],
                    "authorization_response_iss_parameter_supported": true,
                });
                (200, with(document, &behaviour.document))
            }
            "/keys" => {
                let (key, kid) =
                    if behaviour.publishes_another { (&self.other, "k2") } else { (&self.key, "k") };
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let key = json!({
                    "kty": "EC", "crv": "P-256", "x": base64(x), "y": base64(y), "kid": kid,
                    "use": behaviour.key_use.unwrap_or("sig"),
                });
                (200, json!({ "keys": [key] }))
            }
            "/token" => {
                let form = fields(body);
                let challenge = base64(digest(&SHA256, form["code_verifier"].as_bytes()));
                let is_bound = (behaviour.ignores_pkce
                    || behaviour.request.get("code_challenge") == Some(&challenge))
                    && behaviour.request.get("redirect_uri") == form.get("redirect_uri")
                    && form["code"] == "the code";
                if !self.is_client_authenticated(&behaviour, head, &form) {
                    return (401, json!({ "error": "invalid_client" }));
                }
                if !is_bound {
                    return (400, json!({ "error": "invalid_grant" }));
                }
                let id_token = self.id_token(&behaviour);
                behaviour.tokens.clone().unwrap_or_else(|| {
                    (200, json!({ "access_token": "access", "token_type": "Bearer", "id_token": id_token }))
                })
            }
            "/userinfo" => {
                assert!(head.to_lowercase().contains("authorization: bearer access"), "{head}");
                (200, with(json!({ "sub": "ada", "email": "ada@example.com" }), &behaviour.user_info))
            }
            other => panic!("nothing is at {other}"),
        }
    }

    /// Whether the client authenticates, by its secret or by an assertion.
    fn is_client_authenticated(
        &self,
        behaviour: &Behaviour,
        head: &str,
        form: &HashMap<String, String>,
    ) -> bool {
        let Some(key) = &behaviour.asserted_by else {
            return head.contains(&format!("Basic {}", BASE64_STANDARD.encode("us:quiet")));
        };
        let assertion = &form["client_assertion"];
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let claims = BASE64_URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(
            (&claims["iss"], &claims["aud"]),
            (&json!("us"), &json!(format!("{}/token", self.issuer)))
        );
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let key = aws_lc_rs::signature::UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
        key.verify(signed.as_bytes(), &signature).is_ok()
    }

    fn id_token(&self, behaviour: &Behaviour) -> String {
        let now = chancery_web::now().0 / 1000;
        let claims = json!({
            "iss": self.issuer, "sub": "ada", "aud": "us", "exp": now + 300, "iat": now,
            "nonce": behaviour.request.get("nonce"), "name": "Ada Lovelace", "groups": ["staff"],
            "at_hash": base64(&digest(&SHA256, b"access").as_ref()[..16]),
        });
        let header = with(json!({ "alg": "ES256", "kid": "k" }), &behaviour.header);
        let claims = with(claims, &behaviour.claims);
        let signed = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let signature = match header["alg"].as_str().unwrap() {
            "none" => String::new(),
            "HS256" => base64(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"quiet"), signed.as_bytes())),
            _ => {
                let key = if behaviour.signs_by_another { &self.other } else { &self.key };
                base64(key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap())
            }
        };
        let token = format!("{signed}.{signature}");
        behaviour.encrypted_to.as_ref().map_or_else(|| token.clone(), |to| encrypt(&token, to))
    }
}

/// Encrypts by ECDH-ES and A256GCM (RFC 7518, section 4.6) to a point on P-256.
fn encrypt(text: &str, to: &[u8]) -> String {
    let own = PrivateKey::generate(&ECDH_P256).unwrap();
    let public = own.compute_public_key().unwrap();
    let (x, y) = public.as_ref()[1..].split_at(32);
    let epk = json!({ "kty": "EC", "crv": "P-256", "x": base64(x), "y": base64(y) });
    let header = base64(json!({ "alg": "ECDH-ES", "enc": "A256GCM", "epk": epk }).to_string());
    let key = agree(&own, UnparsedPublicKey::new(&ECDH_P256, to), (), |shared| {
        let parts: [&[u8]; 7] = [
            &1_u32.to_be_bytes(),
            shared,
            &7_u32.to_be_bytes(),
            b"A256GCM",
            &[0; 4],
            &[0; 4],
            &256_u32.to_be_bytes(),
        ];
        Ok(digest(&SHA256, &parts.concat()).as_ref().to_vec())
    });
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key.unwrap()).unwrap());
    let mut sealed = text.as_bytes().to_vec();
    let nonce = Nonce::assume_unique_for_key([3; 12]);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&header), &mut sealed).unwrap();
    format!("{header}..{}.{}.{}", base64([3; 12]), base64(sealed), base64(tag))
}
