//! SCIM tokens, with which a directory provisions the users and groups of a store (`docs/contract/scim.md`).

mod rules;

use chancery_application::at_instances;
use chancery_record::{
    Bytes, DERIVED, DefaultValue, FIXED, FieldType, HIDDEN, KEY, Kind, ListRule, Mismatch, Name, OPEN, SCOPE,
    SHOWN, ShortText, TextRule, Timestamp, Token, Value, choice_types, id_types, list_of, list_value, record,
};
use chancery_resource::{
    Action as A, Answer, Call, CarriedBy, Custom, Links, Method as M, Op, Permit::UserStore, Problem,
    Protection, Reach, Reply, Shape, Tx, Unique, added, advance, check_if_match, event_name, key_of, load,
    standard,
};
use uuid::Uuid;

use crate::InstanceId;

id_types! {
    /// The id of a SCIM token.
    ScimTokenId
}

choice_types! {
    /// The users and groups in the scope of a token.
    ScimReach {
        /// Those created by tokens of its lineage.
        Owned,
        /// All of the store.
        All,
    }
}

/// A right of a token.
static RIGHT: TextRule = TextRule {
    name: "ScimRight",
    min: 1,
    max: 20,
    pattern: Some("^(Read|WriteUsers|WriteGroups|Delete)$"),
    example: "Read",
    shape: |text| {
        let is_known = ALL_RIGHTS.contains(&text);
        if is_known { Ok(None) } else { Err("Read, WriteUsers, WriteGroups or Delete") }
    },
    ..TextRule::PLAIN
};

/// A network in CIDR notation, or one address.
static NETWORK: TextRule = TextRule {
    name: "Network",
    min: 2,
    max: 50,
    example: "192.0.2.0/24",
    shape: |text| {
        if rules::is_network(text) {
            Ok(None)
        } else {
            Err("a network such as 192.0.2.0/24 or 2001:db8::/32, or an address")
        }
    },
    ..TextRule::PLAIN
};

const ALL_RIGHTS: [&str; 4] = ["Read", "WriteUsers", "WriteGroups", "Delete"];
static RIGHTS: ListRule = ListRule { item: &RIGHT, most: ALL_RIGHTS.len() };
static NETWORKS: ListRule = ListRule { item: &NETWORK, most: 50 };

macro_rules! list_type {
    ($(#[doc = $about:literal])* $name:ident, $rule:expr) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub Vec<String>);

        impl FieldType for $name {
            const KIND: Kind = Kind::Texts(&$rule);
            fn into_value(self) -> Value {
                list_value(&self.0)
            }
            fn from_value(value: Value) -> Result<Self, Mismatch> {
                let Value::Text(text) = value else { return Err(Mismatch("")) };
                list_of(&text).map(Self).ok_or(Mismatch(""))
            }
        }
    };
}

list_type!(
    /// The rights of a token.
    ScimRights,
    RIGHTS
);
list_type!(
    /// The networks in which a token is valid; all if empty.
    ScimNetworks,
    NETWORKS
);

record! {
    /// A token with which a directory provisions users and groups (SCIM).
    #[de("SCIM-Token", "SCIM-Token", "Ein Token, mit dem ein Verzeichnis Benutzer und Gruppen anlegt und pflegt (SCIM).")]
    pub struct ScimToken {
        /// The user store.
        instance_id: InstanceId = SCOPE,
        /// The id of the token. The audit trail records changes by the token under this id.
        #[de(_, "Die ID des Tokens. Der Prüfpfad verzeichnet Änderungen durch den Token unter dieser ID.")]
        id: ScimTokenId = KEY,
        /// Its name.
        name: Name = OPEN,
        /// The token. It is returned when it is created and never again.
        #[de(_, "Der Token. Er wird beim Anlegen gezeigt und danach nie wieder.")]
        token: Option<ShortText> = SHOWN.unstored(),
        /// The first twelve characters of the token.
        #[de("Beginnt mit", "Die ersten zwölf Zeichen des Tokens.")]
        hint: ShortText = SHOWN.or(DefaultValue::Text("")),
        /// The rights of the token.
        #[de("Rechte", "Die Rechte des Tokens.")]
        rights: ScimRights = OPEN.or(DefaultValue::Text(r#"["Read","WriteUsers","WriteGroups","Delete"]"#)),
        /// The users and groups that the token can access: those created by tokens of its lineage, or all.
        #[de("Reichweite", "Die Benutzer und Gruppen, auf die der Token zugreifen kann: die von Token seiner Linie angelegten oder alle.")]
        reach: ScimReach = FIXED.or(DefaultValue::Text("Owned")),
        /// The token that this token succeeds. This token can access the same users and groups.
        #[de("Nachfolger von", "Der Token, dem dieser Token nachfolgt. Dieser Token kann auf dieselben Benutzer und Gruppen zugreifen.")]
        successor_of: Option<ScimTokenId> = FIXED,
        /// Whether e-mail addresses that the token writes count as confirmed.
        #[de("Adressen gelten als bestätigt", "Ob E-Mail-Adressen, die der Token schreibt, als bestätigt gelten.")]
        confirms_email: bool = OPEN.or(DefaultValue::Bool(false)),
        /// The networks in which the token is valid. If empty, it is valid in all networks.
        #[de("Netze", "Die Netze, in denen der Token gilt. Ohne Angabe gilt er in allen Netzen.")]
        networks: ScimNetworks = OPEN.or(DefaultValue::Text("[]")),
        /// Time at which the token expires, at most two years from now. Without it, the token expires in one year.
        #[de(_, "Zeitpunkt, zu dem der Token abläuft, spätestens in zwei Jahren. Ohne Angabe läuft er in einem Jahr ab.")]
        expires_on: Option<Timestamp> = OPEN,
        /// Whether the token is active.
        #[de(_, "Ob der Token aktiv ist.")]
        is_active: bool = OPEN.or(DefaultValue::Bool(true)),
        /// Since when the token cannot write, because it deactivated or deleted too many users within an hour.
        stopped_on: Option<Timestamp> = SHOWN,
        /// When the token was last used, to the hour.
        last_used_on: Option<Timestamp> = DERIVED,
        /// The number of users created by tokens of its lineage. 1,001 means more than 1,000.
        owned_users: i64 = DERIVED.or(DefaultValue::Int(0)),
        /// The number of groups created by tokens of its lineage. 1,001 means more than 1,000.
        owned_groups: i64 = DERIVED.or(DefaultValue::Int(0)),
        /// A keyed digest of the token.
        digest: Option<Bytes> = HIDDEN,
        /// The first token of its line.
        lineage: Option<Uuid> = HIDDEN,
        /// Concurrency token. It changes with every write to the token.
        concurrency_token: Token = SHOWN,
    }
}

/// A directory decides who is in the store, so a token is protected like the store.
static PROTECTION: Protection = Protection::new(at_instances, CarriedBy::WhoSignsIn, &[], Links::Open);

/// The shape of SCIM tokens.
pub static SCIM_TOKEN: Shape = Shape::of::<ScimToken>("ScimToken", "scim_token", Reach::Store)
    .read_from(
        "(SELECT s.*, (SELECT u.used_on FROM scim_token_use u WHERE u.token_id = s.id) AS last_used_on, \
         (SELECT count(*) FROM (SELECT 1 FROM user_account o WHERE o.store = s.store AND o.scim_owner = s.lineage \
         AND o.quarantined_on IS NULL LIMIT 1001) n) AS owned_users, \
         (SELECT count(*) FROM (SELECT 1 FROM user_group o WHERE o.store = s.store AND o.scim_owner = s.lineage \
         LIMIT 1001) n) AS owned_groups FROM scim_token s)",
    )
    .unique(&[
        Unique::new("scim_token__id", &[ScimToken::ID.field()]),
        Unique::new("scim_token__digest", &[ScimToken::DIGEST.field()]).reported_at(ScimToken::TOKEN),
    ])
    .protected_with_store(&PROTECTION)
    .validate_rows(rules::create_tokens)
    .sensitive()
    .bumps_epoch();

/// The operations on SCIM tokens.
pub static OPERATIONS: [Op; 9] =
    added(standard!("ScimToken", "/administration/ScimToken", UserStore, UserStore, &SCIM_TOKEN));
/// Operations beyond the standard ones.
pub static MORE: &[Op] = &[Op::new(
    "ResumeScimToken",
    M::Post,
    "/administration/ScimToken/{id}/resume",
    UserStore,
    &SCIM_TOKEN,
    A::Custom(Custom::writing(resume).replying(Reply::Empty)),
    "Lets a token write again that was stopped because it deactivated or deleted too many users.",
)
.answering(204, Reply::Empty)
.added()];

fn resume(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = key_of(call, &SCIM_TOKEN)?;
    let was = load(&call.context, tx, &SCIM_TOKEN, None, key)?;
    check_if_match(call, tx, &SCIM_TOKEN, &was)?;
    if was.get(ScimToken::STOPPED_ON)?.is_none() {
        return Err(Problem::conflict("The token is not stopped."));
    }
    let mut values = was.values.clone();
    ScimToken::STOPPED_ON.set(&mut values, None)?;
    advance(&call.context, tx, &SCIM_TOKEN, &was, values, event_name!("resumed"))?;
    Ok(Answer::new(call.request.op.status))
}
