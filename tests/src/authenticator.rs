//! A test authenticator, which can send invalid data.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::{Answer, Client, World};
use serde_json::{Value, json};

use crate::id;

/// The flag of authenticator data that a person was present (WebAuthn Level 3, section 6.1).
pub const PRESENT: u8 = 0x01;
/// The flag that the person was verified.
pub const VERIFIED: u8 = 0x04;
/// The flag that the passkey is backed up.
pub const BACKED_UP: u8 = 0x10;
const ATTESTED: u8 = 0x40;

/// One passkey, and the data that it sends.
pub struct Authenticator {
    /// The key.
    pub key: EcdsaKeyPair,
    /// The id of the passkey, one byte.
    pub id: u8,
    /// The model of the authenticator (AAGUID).
    pub make: uuid::Uuid,
    /// The flags of its authenticator data.
    pub flags: u8,
    /// The reported signature counter.
    pub uses: u8,
    /// The relying party that it names.
    pub relying_party: &'static str,
    /// Members of the client data that replace the valid ones.
    pub client_data_overrides: Value,
    /// How many bytes of the authenticator data it sends.
    pub sent: usize,
    /// Whether its signatures are valid.
    pub signs: bool,
}

fn text(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Authenticator {
    /// A valid one.
    pub fn new(id: u8) -> Self {
        Self {
            key: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap(),
            id,
            make: uuid::Uuid::nil(),
            flags: PRESENT | VERIFIED,
            uses: 0,
            relying_party: "example.org",
            client_data_overrides: json!({}),
            sent: usize::MAX,
            signs: true,
        }
    }

    fn client_data(&self, kind: &str, ceremony: &Value) -> Vec<u8> {
        let mut data = json!({
            "type": kind, "challenge": ceremony["publicKey"]["challenge"], "origin": "https://example.org",
            "crossOrigin": false,
        });
        data.as_object_mut().unwrap().extend(self.client_data_overrides.as_object().unwrap().clone());
        data.to_string().into_bytes()
    }

    fn head(&self, flags: u8) -> Vec<u8> {
        let mut data = digest(&SHA256, self.relying_party.as_bytes()).as_ref().to_vec();
        data.extend([flags, 0, 0, 0, self.uses]);
        data
    }

    fn answer(&self, response: &Value) -> Value {
        let id = text(&[self.id]);
        json!({ "id": id, "rawId": id, "type": "public-key", "response": response })
    }

    fn cut(&self, data: Vec<u8>) -> Vec<u8> {
        data.into_iter().take(self.sent).collect()
    }

    /// Creates a passkey for a registration.
    pub fn make_passkey(&self, ceremony: &Value) -> Value {
        let mut data = self.head(self.flags | ATTESTED);
        data.extend(self.make.as_bytes());
        data.extend([0, 1, self.id]);
        // CBOR: the key (RFC 9052), then around all of it the attestation object
        let point = self.key.public_key().as_ref();
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20]);
        data.extend(&point[1..33]);
        data.extend([0x22, 0x58, 0x20]);
        data.extend(&point[33..]);
        let data = self.cut(data);
        let length = u8::try_from(data.len()).unwrap();
        let object = [b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58", &[length][..], &data].concat();
        self.answer(&json!({
            "clientDataJSON": text(&self.client_data("webauthn.create", ceremony)), "attestationObject": text(&object),
        }))
    }

    /// Registers with a user.
    pub async fn register(&self, world: &World, user: &Value) -> Answer {
        self.register_by(&world.admin, world, user).await
    }

    /// Registers it with a user, by another client.
    pub async fn register_by(&self, client: &Client, world: &World, user: &Value) -> Answer {
        let path = world.path(&format!("/PasskeyCredential/user/{}/registration", id(user)));
        let ceremony = client.post(&path, json!({})).await.is(200).json();
        let answer = self.make_passkey(&ceremony);
        client.put(&format!("{path}/{}", ceremony["ceremonyId"].as_str().unwrap()), answer).await
    }

    /// Signs with its passkey for an authentication, with this user handle if there is one.
    pub fn authenticate(&self, ceremony: &Value, user: Option<uuid::Uuid>) -> Value {
        let (client_data, data) =
            (self.client_data("webauthn.get", ceremony), self.cut(self.head(self.flags)));
        let mut message = [&data, digest(&SHA256, &client_data).as_ref()].concat();
        message.extend((!self.signs).then_some(0));
        let signature = self.key.sign(&SystemRandom::new(), &message).unwrap();
        self.answer(&json!({
            "clientDataJSON": text(&client_data), "authenticatorData": text(&data), "signature": text(signature.as_ref()),
            "userHandle": user.map(|user| text(user.as_bytes())),
        }))
    }

    /// Signs in.
    pub async fn sign_in(&self, world: &World, user: &Value) -> Answer {
        let path = world.path("/PasskeyCredential/authentication");
        let ceremony =
            world.admin.post(&path, json!({ "loginName": user["loginName"] })).await.is(200).json();
        let answer = self.authenticate(&ceremony, None);
        world.admin.put(&format!("{path}/{}", ceremony["ceremonyId"].as_str().unwrap()), answer).await
    }
}

/// Sets the relying party of the test authenticators.
pub async fn allow(world: &World) {
    world.set_option("PasskeyRelyingPartyId", "example.org").await;
    world.set_option("PasskeyAllowedOrigins", "https://example.org").await;
}

/// Makes users ready to live without their password.
pub async fn make_ready(world: &World, users: &[&Value]) {
    for (option, value) in
        [("PasskeyRequiredCredentialCount", "1"), ("PasskeyRequiredVerifiedSecurityContactCount", "0")]
    {
        world.set_option(option, value).await;
    }
    allow(world).await;
    for (number, user) in (1..).step_by(2).zip(users) {
        for number in [number, number + 1] {
            Authenticator::new(number).register(world, user).await.expect(201);
        }
        let path = world.path(&format!("/User/{}/password/reset", id(user)));
        world.admin.post(&path, json!({ "newPassword": "four lively grey herons" })).await.expect(200);
    }
    // both are old and were used; one of them is copied to other devices
    let aged = "UPDATE passkey_credential SET created_on = 1, last_used_on = 2, \
        is_backup_eligible = (rid IN (SELECT max(rid) FROM passkey_credential GROUP BY user_rid)), \
        is_backed_up = (rid IN (SELECT max(rid) FROM passkey_credential GROUP BY user_rid))";
    world.sql(vec![(aged, vec![])]).await;
}
