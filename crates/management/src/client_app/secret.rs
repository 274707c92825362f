//! Secrets of a client app. A value is in the answer to its creation, and never again.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{
    Bytes, FIXED, HIDDEN, KEY, Label, OPEN, OptionValue, SHOWN, Sealing, ShortText, Timestamp, Token, Value,
    id_types, record,
};
use chancery_resource::{
    Call, Op, Parent, Problem, Proposed, Reach, Shape, Tx, Unique, Violation, random, standard,
};

use super::{
    CLIENT_APP, ClientAppId, administrator, configuration, controller::note_change,
    scope_and_resource::of_client_app,
};
use crate::subscription::resolve::{id_in, put, text_in, wrong};

id_types! {
    /// The id of a secret.
    ClientAppSecretId
}

record! {
    /// A secret by which a client app proves who it is.
    pub struct ClientAppSecret {
        /// The secret.
        id: ClientAppSecretId = KEY,
        /// Its name.
        name: Label = OPEN.or(chancery_record::Preset::Text("")),
        /// Its value: 16 to 512 characters, or left to the server, which takes 32 random bytes. It is
        /// told when it is made and never again.
        secret: Option<ShortText> = FIXED.not_kept(),
        /// When it ends.
        expiry: Option<Timestamp> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// A keyed digest of the value.
        digest: Option<Bytes> = HIDDEN,
        /// The value, encrypted, where it is needed: to verify what was signed with it.
        sealed_secret: Option<OptionValue> = HIDDEN.sealed(Sealing::Secret),
        /// Changes with every write to the secret.
        concurrency_token: Token = SHOWN,
    }
}

/// The resource.
pub static CLIENT_APP_SECRET: Shape = Shape::of::<ClientAppSecret>(
    "ClientAppSecret",
    "client_app_secret",
    Reach::Of("client_app_id", &CLIENT_APP),
)
.belonging(&[Parent::new("client_app_id", &CLIENT_APP).of_at_most(MOST)])
.unique(&[
    Unique::new("client_app_secret__id", "id"),
    Unique::new("client_app_secret__client_app_id__digest", "secret"),
])
.validate_rows(make)
.after_write(note_change)
.postcondition(administrator::keep_one)
.bumps_epoch();

/// Secrets of a client app: the token endpoint reads all of them.
const MOST: usize = 1000;
/// Fewest and most characters of a value.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=512;
/// Fewest bytes of a value that signs (RFC 7518, section 3.2, for HS256).
const SIGNING: usize = 32;

/// Gives new rows their value, or digests the one that was given. An older one may be repeated.
fn make(call: &Call, tx: &mut Tx<'_>, rows: &mut [Proposed<'_>]) -> Result<Vec<Violation>, Problem> {
    let shape = &CLIENT_APP_SECRET;
    let apps: Vec<_> = rows.iter().filter_map(|row| id_in(shape, row.values, "client_app_id")).collect();
    let signing = configuration::which_sign(tx, &apps)?;
    let mut violations = Vec::new();
    for (place, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_some()) {
        let given = text_in(shape, row.values, "secret")
            .map(|secret| call.context.app.master.secret_digest(secret.as_bytes()));
        let kept = shape.field_index("digest").and_then(|at| row.values.get(at));
        if given.is_some_and(|given| kept != Some(&Value::Bytes(given))) {
            violations.push(wrong(
                place,
                "secret",
                "is set at creation alone: make a new secret, then delete this one",
            ));
        }
        put(shape, row.values, "secret", Value::Null);
    }
    for (place, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_none()) {
        let given = text_in(shape, row.values, "secret").map(str::to_owned);
        let secret = given.unwrap_or_else(|| BASE64_URL_SAFE_NO_PAD.encode(random::<32>()));
        let signs = id_in(shape, row.values, "client_app_id").is_some_and(|app| signing.contains(&app));
        if !LENGTHS.contains(&secret.chars().count()) {
            violations.push(wrong(
                place,
                "secret",
                "must have 16 to 512 characters, or be left to the server",
            ));
        } else if signs && secret.len() < SIGNING {
            violations.push(wrong(
                place,
                "secret",
                "must have at least 32 bytes: the client app signs with it",
            ));
        }
        put(
            shape,
            row.values,
            "digest",
            Value::Bytes(call.context.app.master.secret_digest(secret.as_bytes())),
        );
        if signs {
            put(shape, row.values, "sealed_secret", secret.as_str());
        }
        put(shape, row.values, "secret", secret);
    }
    Ok(violations)
}

/// Its operations.
pub static OPERATIONS: [Op; 9] =
    standard!("ClientAppSecret", "/ClientAppSecret", TenantMember, SubscriptionAdmin, &CLIENT_APP_SECRET);
/// Those of a client app.
pub static OF_CLIENT_APP: &[Op] = &[of_client_app(
    "GetClientAppSecretsByClientApp",
    "/ClientAppSecret/clientapp/{clientAppId}",
    &CLIENT_APP_SECRET,
)];
