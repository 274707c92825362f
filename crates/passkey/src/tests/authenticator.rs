//! A small software authenticator that can answer falsely.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    rsa::KeySize,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde_cbor_2::Value as Cbor;
use serde_json::{Map, Value, json};

use crate::answer::to_base64;

pub const PRESENT: u8 = 0x01;
pub const VERIFIED: u8 = 0x04;
pub const ELIGIBLE: u8 = 0x08;
pub const BACKED_UP: u8 = 0x10;
const ATTESTED: u8 = 0x40;

pub enum Key {
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

pub struct Authenticator {
    pub key: Key,
    pub id: Vec<u8>,
    pub aaguid: [u8; 16],
    pub flags: u8,
    pub sign_count: u32,
    pub relying_party: String,
    pub user_handle: Option<Vec<u8>>,
    /// Members of the client data that replace the honest ones or are added to them.
    pub client: Map<String, Value>,
    pub attests: bool,
    /// The attestation key of the model and its certificates, if the authenticator attests with it.
    pub attester: Option<(EcdsaKeyPair, Vec<Vec<u8>>)>,
    /// A certificate that is added without a signature to verify it.
    pub boast: Option<Vec<u8>>,
}

impl Authenticator {
    pub fn new() -> Self {
        Self::with(Key::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap()))
    }

    pub fn of_rsa() -> Self {
        Self::with(Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    fn with(key: Key) -> Self {
        Self {
            key,
            id: vec![1, 2, 3, 4],
            aaguid: [9; 16],
            flags: PRESENT | VERIFIED,
            sign_count: 1,
            relying_party: "example.org".to_owned(),
            user_handle: Some(uuid::Uuid::from_u128(7).as_bytes().to_vec()),
            client: Map::new(),
            attests: false,
            attester: None,
            boast: None,
        }
    }

    fn client_data(&self, kind: &str, options: &Value) -> Vec<u8> {
        let mut data = json!({
            "type": kind, "challenge": options["challenge"], "origin": "https://example.org", "crossOrigin": false,
            "tokenBinding": {"status": "supported"},
        });
        data.as_object_mut().unwrap().extend(self.client.clone());
        serde_json::to_vec(&data).unwrap()
    }

    fn head(&self, flags: u8) -> Vec<u8> {
        let mut data = digest(&SHA256, self.relying_party.as_bytes()).as_ref().to_vec();
        data.push(flags);
        data.extend(self.sign_count.to_be_bytes());
        data
    }

    fn sign(&self, data: &[u8], client_data: &[u8]) -> Vec<u8> {
        let message = [data, digest(&SHA256, client_data).as_ref()].concat();
        let random = SystemRandom::new();
        match &self.key {
            Key::Ec(key) => key.sign(&random, &message).unwrap().as_ref().to_vec(),
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, &message, &mut signature).unwrap();
                signature
            }
        }
    }

    fn algorithm(&self) -> i128 {
        if matches!(self.key, Key::Ec(_)) { -7 } else { -257 }
    }

    /// The public key in COSE (RFC 9052, RFC 8230).
    fn cose_key(&self) -> Cbor {
        let bytes = |slice: &[u8]| Cbor::Bytes(slice.to_vec());
        let members = match &self.key {
            Key::Ec(key) => {
                let point = key.public_key().as_ref();
                vec![
                    (1, Cbor::Integer(2)),
                    (-1, Cbor::Integer(1)),
                    (-2, bytes(&point[1..33])),
                    (-3, bytes(&point[33..])),
                ]
            }
            Key::Rsa(key) => {
                // SEQUENCE { INTEGER of 257 bytes with its leading zero, INTEGER of 3 }
                let der: Vec<u8> = key.public_key().as_ref().to_vec();
                vec![(1, Cbor::Integer(3)), (-1, bytes(&der[9..265])), (-2, bytes(&der[267..]))]
            }
        };
        let all = members.into_iter().chain([(3, Cbor::Integer(self.algorithm()))]);
        Cbor::Map(all.map(|(name, value)| (Cbor::Integer(name), value)).collect())
    }

    /// Answers `navigator.credentials.create`.
    pub fn create(&self, options: &Value) -> Value {
        let client_data = self.client_data("webauthn.create", options);
        let mut data = self.head(self.flags | ATTESTED);
        data.extend(self.aaguid);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        data.extend(serde_cbor_2::to_vec(&self.cose_key()).unwrap());
        let text = |text: &str| Cbor::Text(text.to_owned());
        let (format, statement) = if let Some((key, chain)) = &self.attester {
            let message = [&data, digest(&SHA256, &client_data).as_ref()].concat();
            let signature = key.sign(&SystemRandom::new(), &message).unwrap();
            let chain = chain.iter().cloned().map(Cbor::Bytes).collect();
            let members = [
                (text("alg"), Cbor::Integer(-7)),
                (text("sig"), Cbor::Bytes(signature.as_ref().to_vec())),
                (text("x5c"), Cbor::Array(chain)),
            ];
            ("packed", members.into_iter().collect())
        } else if self.attests {
            let signature = Cbor::Bytes(self.sign(&data, &client_data));
            let members = [(text("alg"), Cbor::Integer(self.algorithm())), (text("sig"), signature)];
            ("packed", members.into_iter().collect())
        } else {
            let boast = self.boast.clone().map(|one| (text("x5c"), Cbor::Array(vec![Cbor::Bytes(one)])));
            ("none", boast.into_iter().collect())
        };
        let object = Cbor::Map(
            [
                (text("fmt"), text(format)),
                (text("attStmt"), Cbor::Map(statement)),
                (text("authData"), Cbor::Bytes(data)),
            ]
            .into_iter()
            .collect(),
        );
        self.answer(&json!({
            "clientDataJSON": to_base64(&client_data),
            "attestationObject": to_base64(&serde_cbor_2::to_vec(&object).unwrap()),
            "transports": ["usb", "smart-card", "telepathy"],
        }))
    }

    /// Answers `navigator.credentials.get`.
    pub fn get(&self, options: &Value) -> Value {
        let client_data = self.client_data("webauthn.get", options);
        let data = self.head(self.flags);
        self.answer(&json!({
            "clientDataJSON": to_base64(&client_data),
            "authenticatorData": to_base64(&data),
            "signature": to_base64(&self.sign(&data, &client_data)),
            "userHandle": self.user_handle.as_deref().map(to_base64),
        }))
    }

    fn answer(&self, response: &Value) -> Value {
        let id = to_base64(&self.id);
        json!({
            "id": id, "rawId": id, "type": "public-key", "response": response,
            "authenticatorAttachment": "cross-platform", "clientExtensionResults": {"credProps": {"rk": true}},
        })
    }
}
