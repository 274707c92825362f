//! Secrets of a client app. The answer to a creation shows the value, and no answer after it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{
    Bytes, FIXED, HIDDEN, KEY, Label, Mismatch, OPEN, OptionValue, SHOWN, Sealing, ShortText, Timestamp,
    Token, id_types, record,
};
use chancery_resource::{
    Op, Parent, Problem, ProposedRow, Reach, Shape, Tx, Unique, Violation, Writer, list_of, random, standard,
};

use super::{
    CLIENT_APP, ClientAppId, administrator, configuration, controller::note,
    scope_and_resource::of_client_app,
};
use crate::violation::violation_at;

id_types! {
    /// The id of a secret.
    ClientAppSecretId
}

record! {
    /// A client secret, with which a client app authenticates.
    #[de("Client-Geheimnis", "Client-Geheimnisse", "Ein Client-Geheimnis, mit dem sich eine Client-App authentifiziert.")]
    pub struct ClientAppSecret {
        /// The secret.
        id: ClientAppSecretId = KEY,
        /// Its name.
        name: Label = OPEN.or(chancery_record::DefaultValue::Text("")),
        /// Value of the secret: 16 to 512 characters. If omitted, the server generates 32 random bytes. The value is returned only once,
        /// when the secret is created.
        #[de(
            _,
            "Der Wert des Geheimnisses: 16 bis 512 Zeichen. Ohne Angabe erzeugt der Server 32 zufällige Bytes. Der Wert wird nur einmal beim Anlegen gezeigt."
        )]
        secret: Option<ShortText> = FIXED.unstored(),
        /// When the secret expires.
        #[de("Läuft ab am")]
        expiry: Option<Timestamp> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// A keyed digest of the value.
        digest: Option<Bytes> = HIDDEN,
        /// The value, encrypted, where it is needed: to verify what was signed with it.
        sealed_secret: Option<OptionValue> = HIDDEN.sealed(Sealing::Secret),
        /// Concurrency token. It changes with every write to the secret.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of secrets.
pub static CLIENT_APP_SECRET: Shape = Shape::of::<ClientAppSecret>(
    "ClientAppSecret",
    "client_app_secret",
    Reach::Of(ClientAppSecret::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.sensitive()
.belonging(&[Parent::new(ClientAppSecret::CLIENT_APP_ID, &CLIENT_APP).of_at_most(MAX_SECRETS)])
.unique(&[
    Unique::new("client_app_secret__id", &[ClientAppSecret::ID.field()]),
    Unique::new(
        "client_app_secret__client_app_id__digest",
        &[ClientAppSecret::CLIENT_APP_ID.field(), ClientAppSecret::DIGEST.field()],
    )
    .reported_at(ClientAppSecret::SECRET),
])
.validate_rows(create)
.after_write(|context, tx, values| {
    let app = ClientAppSecret::CLIENT_APP_ID.get(values)?;
    administrator::require_system_admin_until(context, tx, app, ClientAppSecret::EXPIRY.get(values)?)?;
    note(context, tx, app)
})
.postcondition(administrator::require_system_admin)
.removable()
.bumps_epoch();

/// The maximum number of secrets of a client app: the token endpoint reads all of them.
const MAX_SECRETS: usize = 1000;
/// The bounds of the length of a value, in characters.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=512;
/// The minimum size of a value that can sign, in bytes (RFC 7518, section 3.2, for HS256).
const MIN_SIGNING_BYTES: usize = 32;

/// A new value. It begins with a letter, because programs parse a leading dash as an option.
fn generated() -> String {
    loop {
        let value = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
        if value.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return value;
        }
    }
}

/// Generates the values of new rows, or digests those provided. A replacement may repeat the stored value.
fn create(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let apps = rows.iter().map(|row| Ok(row.get(ClientAppSecret::CLIENT_APP_ID)?.0));
    let apps = apps.collect::<Result<Vec<_>, Mismatch>>()?;
    let signing = configuration::with_client_secret_jwt(tx, &apps)?;
    let mut violations = Vec::new();
    for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_some()) {
        let given = row
            .text(ClientAppSecret::SECRET)
            .map(|secret| Bytes(writer.context.app.master.secret_digest(secret.as_bytes())));
        if given.is_some() && given != row.get(ClientAppSecret::DIGEST)? {
            violations.push(violation_at(
                index,
                ClientAppSecret::SECRET,
                "is set at creation alone: make a new secret, then delete this one",
            ));
        }
        row.set(ClientAppSecret::SECRET, None)?;
    }
    for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.was.is_none()) {
        let given = row.text(ClientAppSecret::SECRET).map(str::to_owned);
        let secret = given.unwrap_or_else(generated);
        let signs = signing.contains(&row.get(ClientAppSecret::CLIENT_APP_ID)?.0);
        if !LENGTHS.contains(&secret.chars().count()) {
            violations.push(violation_at(
                index,
                ClientAppSecret::SECRET,
                "must have 16 to 512 characters, or be left to the server",
            ));
        } else if signs && secret.len() < MIN_SIGNING_BYTES {
            violations.push(violation_at(
                index,
                ClientAppSecret::SECRET,
                "must have at least 32 bytes: the client app signs with it",
            ));
        }
        let digest = writer.context.app.master.secret_digest(secret.as_bytes());
        row.set(ClientAppSecret::DIGEST, Some(Bytes(digest)))?;
        if signs {
            ClientAppSecret::SEALED_SECRET.field().set(row.values, secret.as_str().into());
        }
        ClientAppSecret::SECRET.field().set(row.values, secret.into());
    }
    Ok(violations)
}

/// The operations on secrets.
pub static OPERATIONS: [Op; 9] =
    standard!("ClientAppSecret", "/ClientAppSecret", TenantMember, SubscriptionAdmin, &CLIENT_APP_SECRET);
/// The operation that lists the secrets of a client app.
pub static OF_CLIENT_APP: &[Op] = &[of_client_app(
    "GetClientAppSecretsByClientApp",
    "/ClientAppSecret/clientapp/{clientAppId}",
    &CLIENT_APP_SECRET,
    |call, tx| list_of(call, tx, &CLIENT_APP, 0, ClientAppSecret::CLIENT_APP_ID),
)];
