//! Key sets of a client app: the public keys that it signs with, or that content is encrypted to.

use chancery_certificate::facts_of;
use chancery_oauth::{Algorithm, JwkSet, KEY_ENCRYPTION};
use chancery_record::{
    Bytes, DefaultValue, FIXED, Identifier, JwksText, KEY, Name, OPEN, SHOWN, Timestamp, Token, Url, Value,
    choice_types, id_types, record,
};
use chancery_resource::{
    Findings, Op, Parent, Problem, ProposedRow, Reach, Rules, Shape, Tx, Unique, Violation, Writer, added,
    standard,
};

use super::{CLIENT_APP, ClientAppId, administrator, controller::note};
use crate::violation::{conflict_at, violation_at};

id_types! {
    /// The id of a key set.
    ClientAppKeySetId
}

choice_types! {
    /// The use of keys.
    KeyUse {
        /// The client signs with them.
        Signing,
        /// Content for the client is encrypted to them.
        Encryption,
    }
    /// The status of a key set.
    KeySetStatus {
        /// It is not used yet.
        Pending,
        /// It is used.
        Active,
        /// It is still used, and to be replaced.
        Retiring,
        /// It is not used any more.
        Retired,
        /// It must not be used.
        Revoked,
    }
}

record! {
    /// A key set of a client app: a JWK set, the address of a JWK set, or a certificate.
    #[de(
        "Schlüsselsatz",
        "Schlüsselsätze",
        "Ein Schlüsselsatz einer Client-App: ein JWK-Set, die Adresse eines JWK-Sets oder ein Zertifikat."
    )]
    pub struct ClientAppKeySet {
        /// The key set.
        id: ClientAppKeySetId = KEY,
        /// Its name, unique for the client app.
        name: Option<Name> = OPEN,
        /// Use of the keys.
        #[de("Verwendung", "Die Verwendung der Schlüssel.")]
        key_use: KeyUse = OPEN.named("use"),
        /// The keys as a JWK set (RFC 7517). It contains only public keys.
        #[de("Schlüssel (JWKS)", "Die Schlüssel als JWK-Set (RFC 7517). Es enthält nur öffentliche Schlüssel.")]
        jwks: Option<JwksText> = OPEN,
        /// Address of the JWK set.
        #[de("Adresse der Schlüssel", "Die Adresse des JWK-Satzes.")]
        jwks_uri: Option<Url> = OPEN,
        /// A certificate that contains the key, in DER format.
        #[de(_, "Ein Zertifikat, das den Schlüssel enthält, im Format DER.")]
        certificate: Option<Bytes> = OPEN,
        /// Key ID (`kid`) of the key to use. If empty, all keys are used.
        #[de(
            "Schlüsselkennung",
            "Die Schlüsselkennung (`kid`) des zu verwendenden Schlüssels. Ohne Angabe werden alle Schlüssel verwendet."
        )]
        kid: Option<Identifier> = OPEN,
        /// The only algorithm that the keys are used with, if set.
        #[de("Verfahren", "Der einzige Algorithmus, mit dem die Schlüssel verwendet werden, sofern angegeben.")]
        algorithm: Option<Name> = OPEN.like("ES256"),
        /// Status of the key set. It changes from Pending to Active to Retiring to Retired, and from any status to Revoked.
        #[de(
            _,
            "Der Status des Schlüsselsatzes. Er wechselt von Pending über Active und Retiring zu Retired, und von jedem Status zu Revoked."
        )]
        status: KeySetStatus = OPEN.or(DefaultValue::Text("Pending")),
        /// Time from which the key set can be used.
        #[de(_, "Der Zeitpunkt, ab dem der Schlüsselsatz verwendet werden kann.")]
        valid_from: Option<Timestamp> = OPEN,
        /// Time until which the key set can be used.
        #[de(_, "Der Zeitpunkt, bis zu dem der Schlüsselsatz verwendet werden kann.")]
        valid_to: Option<Timestamp> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// Concurrency token. It changes with every write to the key set.
        concurrency_token: Token = SHOWN,
    }
}

impl Rules for ClientAppKeySet {
    fn check(&self, wrong: &mut Findings) {
        let given = [self.jwks.is_some(), self.jwks_uri.is_some(), self.certificate.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            wrong.add(Self::JWKS, "exactly one of jwks, jwksUri and certificate is to be given");
        }
        if let Some(jwks) = &self.jwks {
            match JwkSet::parse(jwks.as_str().as_bytes()) {
                Ok(set) if set.skipped.is_empty() => {}
                Ok(set) => {
                    let kinds = set.skipped.iter().map(|index| format!("/keys/{index}")).collect::<Vec<_>>();
                    wrong.add(
                        Self::JWKS,
                        format!("holds keys of a kind that is not known here: {}", kinds.join(", ")),
                    );
                }
                Err(problem) => wrong.add(Self::JWKS, problem.to_string()),
            }
        }
        if self.jwks_uri.as_ref().is_some_and(|uri| !uri.as_str().starts_with("https://")) {
            wrong.add(Self::JWKS_URI, "must be an https address");
        }
        if let Some(certificate) = &self.certificate
            && let Err(refusal) = facts_of(&certificate.0)
        {
            wrong.add(Self::CERTIFICATE, refusal.to_string());
        }
        if let (Some(from), Some(to)) = (self.valid_from, self.valid_to)
            && from >= to
        {
            wrong.add(Self::VALID_TO, "must be after validFrom");
        }
    }
}

/// The shape of key sets.
pub static CLIENT_APP_KEY_SET: Shape = Shape::of::<ClientAppKeySet>(
    "ClientAppKeySet",
    "client_app_key_set",
    Reach::Of(ClientAppKeySet::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.sensitive()
.belonging(&[Parent::new(ClientAppKeySet::CLIENT_APP_ID, &CLIENT_APP).of_at_most(MAX_KEY_SETS)])
.unique(&[
    Unique::new("client_app_key_set__id", &[ClientAppKeySet::ID.field()]),
    Unique::new(
        "client_app_key_set__client_app_id__name",
        &[ClientAppKeySet::CLIENT_APP_ID.field(), ClientAppKeySet::NAME.field()],
    ),
])
.ruled::<ClientAppKeySet>()
.validate_rows(check)
.after_write(|context, tx, values| {
    let app = ClientAppKeySet::CLIENT_APP_ID.get(values)?;
    administrator::require_system_admin_until(context, tx, app, ClientAppKeySet::VALID_TO.get(values)?)?;
    note(context, tx, app)
})
.postcondition(administrator::require_system_admin)
.removable()
.bumps_epoch();

/// The maximum number of key sets of a client app: the token endpoint reads all usable ones.
const MAX_KEY_SETS: usize = 100;

/// Validates that a key set's status only moves forward. Its keys are validated only when they change, so
/// that an old key set that would not pass today can still be retired.
#[expect(clippy::unnecessary_wraps, reason = "the engine calls it by this form")]
fn check(_: Writer<'_>, _: &mut Tx<'_>, rows: &mut [ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let status =
        |values: &[Value]| ClientAppKeySet::STATUS.text(values).and_then(chancery_oauth::KeySetStatus::named);
    let mut violations = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let before = row.was.and_then(|was| status(&was.values));
        if let (Some(before), Some(next)) = (before, status(row.values))
            && !before.can_transition_to(next)
        {
            let detail = format!("goes from {} to another, but not to {}", before.name(), next.name());
            violations.push(conflict_at(index, ClientAppKeySet::STATUS, detail));
        }
        let signing_data = |values: &[Value]| {
            [
                ClientAppKeySet::JWKS.text(values),
                ClientAppKeySet::KID.text(values),
                ClientAppKeySet::KEY_USE.text(values),
                ClientAppKeySet::ALGORITHM.text(values),
            ]
            .map(|text| text.map(str::to_owned))
        };
        let now = signing_data(row.values);
        if row.was.is_some_and(|was| signing_data(&was.values) == now) {
            continue;
        }
        let [jwks, kid, key_use, algorithm] = now;
        let keys = jwks.and_then(|jwks| JwkSet::parse(jwks.as_bytes()).ok());
        if let (Some(set), Some(kid)) = (keys, &kid)
            && !set.keys.iter().any(|key| key.kid.as_ref() == Some(kid))
        {
            violations.push(violation_at(index, ClientAppKeySet::KID, "names none of the keys in jwks"));
        }
        let signs = key_use.as_deref() == Some(KeyUse::Signing.name());
        if algorithm.is_some_and(|algorithm| !is_served(&algorithm, signs)) {
            let detail = format!("must be one of {}", algorithms(signs).join(", "));
            violations.push(violation_at(index, ClientAppKeySet::ALGORITHM, detail));
        }
    }
    Ok(violations)
}

/// Whether this server supports the algorithm, for signatures or else for encryption.
fn is_served(algorithm: &str, signs: bool) -> bool {
    if signs {
        Algorithm::named(algorithm).is_some_and(|known| !known.is_symmetric())
    } else {
        KEY_ENCRYPTION.contains(&algorithm)
    }
}

/// The names of the supported algorithms, for signatures or else for encryption.
fn algorithms(signs: bool) -> Vec<&'static str> {
    if !signs {
        return KEY_ENCRYPTION.to_vec();
    }
    Algorithm::ALL.iter().filter(|one| !one.is_symmetric()).map(|one| one.name()).collect()
}

/// The operations on key sets.
pub static OPERATIONS: [Op; 9] = added(standard!(
    "ClientAppKeySet",
    "/ClientAppKeySet",
    TenantMember,
    SubscriptionAdmin,
    &CLIENT_APP_KEY_SET
));
