//! Overviews of passkeys, passes, recoveries and security events: of one user, and of a store.

use chancery_passkey::{AuthenticatorModels, CredentialFacts, Policy, is_usable};
use chancery_record::{Timestamp, Value, format_timestamp};
use chancery_resource::{
    Action as A, Answer, Call, Context, Custom, JsonForm, LIST, Method as M, Mode, Op, Permit::UserStore,
    Problem, Reply, Shape, Sql, Tx, find_owner, write_items,
};
use serde_json::{Value as Json, json};

use super::{
    PASSKEY, access_pass::ACCESS_PASS, authenticator_model, event::EVENT, facts, policy, recovery::RECOVERY,
};
use crate::user::USER;

/// The maximum number of users in a store's overview.
const MAX_USERS: usize = 1000;
/// The items of each other array of an overview: the newest 100.
const NEWEST: &str = " ORDER BY t.id DESC LIMIT 100";

fn items(name: &str) -> Json {
    json!({
        "type": "array", "description": "The newest items, at most 100.",
        "items": { "$ref": format!("#/components/schemas/{name}") },
    })
}

pub fn object(about: &str, members: &[(&str, Json)]) -> Json {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Json> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({ "type": "object", "description": about, "required": names, "properties": properties })
}

pub fn text(about: &str) -> Json {
    json!({ "type": "string", "description": about })
}

fn id(about: &str) -> Json {
    json!({ "type": "string", "format": "uuid", "description": about })
}

pub fn count(about: &str) -> Json {
    json!({ "type": "integer", "minimum": 0, "description": about })
}

pub fn flag(about: &str) -> Json {
    json!({ "type": "boolean", "description": about })
}

pub fn user_schema() -> Json {
    object(
        "The user.",
        &[
            ("id", id("The user.")),
            ("loginName", text("The login name.")),
            ("displayName", text("The display name of the user.")),
        ],
    )
}

fn readiness_schema() -> Json {
    let reasons = json!({ "type": "array", "items": { "type": "string" }, "description": "The reasons that block the removal of the password, in a fixed order." });
    object(
        "The user's readiness for sign-in without a password, and the reasons that block it.",
        &[
            ("userId", id("The user.")),
            (
                "passwordCredentialStatus",
                text(
                    "The status of the password: NotSet, Initial, Active, ChangeRequired, Expired or Removed.",
                ),
            ),
            (
                "primaryAuthenticationStatus",
                text(
                    "The primary authentication status: None, PasswordOnly, PasswordAndPasskey or PasskeyOnly.",
                ),
            ),
            ("usableCredentialCount", count("The number of usable passkeys.")),
            ("requiredCredentialCount", count("The required number of usable passkeys.")),
            ("verifiedSecurityContactCount", count("The number of verified security contacts.")),
            (
                "requiredVerifiedSecurityContactCount",
                count("The required number of verified security contacts."),
            ),
            (
                "credentialDiversitySatisfied",
                flag(
                    "Whether the user has passkeys of two authenticator models, or one that is copied to other devices and one that cannot be.",
                ),
            ),
            ("recoveryRouteOperational", flag("Whether there is a way for the user to recover access.")),
            (
                "matureBindingLineageAvailable",
                flag("Whether the user has a passkey that is old enough and was used."),
            ),
            ("readyForPasswordRemoval", flag("Whether no reason blocks the removal of the password.")),
            ("blockingReasons", reasons),
            ("policyFingerprint", text("The SHA-256 hash over the passkey options in effect, hexadecimal.")),
        ],
    )
}

static USER_OVERVIEW: JsonForm = JsonForm {
    name: "PasskeyUserOverview",
    schema: || {
        let passkey = json!({ "allOf": [
            { "$ref": "#/components/schemas/PasskeyCredential" },
            { "type": "object", "required": ["isUsable", "authenticatorName"], "properties": {
                "isUsable": flag("Whether the store's rules allow the passkey and its authenticator model has no known undesired status."),
                "authenticatorName": { "type": ["string", "null"], "description": "The model of the authenticator, if it is known." },
            } },
        ] });
        object(
            "A user's passkeys and related information.",
            &[
                ("user", user_schema()),
                ("readiness", readiness_schema()),
                ("credentials", json!({ "type": "array", "description": "The passkeys.", "items": passkey })),
                ("temporaryAccessPasses", items("TemporaryAccessPass")),
                ("recoveryTransactions", items("RecoveryTransaction")),
                ("securityEvents", items("PasskeySecurityEvent")),
            ],
        )
    },
};

static OPERATIONS_OVERVIEW: JsonForm = JsonForm {
    name: "PasskeyOperationsOverview",
    schema: || {
        let one = object(
            "A user and the user's readiness for sign-in without a password.",
            &[("user", user_schema()), ("readiness", readiness_schema())],
        );
        object(
            "The passkeys of a store.",
            &[
                (
                    "generatedOn",
                    json!({ "type": "string", "format": "date-time", "description": "When it was created." }),
                ),
                (
                    "users",
                    json!({ "type": "array", "description": "At most 1,000 users. Users who are not ready come first.", "items": one }),
                ),
                ("temporaryAccessPasses", items("TemporaryAccessPass")),
                ("recoveryTransactions", items("RecoveryTransaction")),
                ("securityEvents", items("PasskeySecurityEvent")),
            ],
        )
    },
};

/// The operations that read overviews.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "GetUserOverview",
        M::Get,
        "/administration/passkey-security/users/{userId}",
        UserStore,
        &PASSKEY,
        A::Custom(Custom::reading(of_user).replying(Reply::Json(&USER_OVERVIEW))),
        "Shows a user's passkeys and related information.",
    ),
    Op::new(
        "GetOperations",
        M::Get,
        "/administration/passkey-security/operations",
        UserStore,
        &PASSKEY,
        A::Custom(Custom {
            mode: Mode::Long,
            ..Custom::reading(of_store).replying(Reply::Json(&OPERATIONS_OVERVIEW))
        }),
        "Shows the readiness of a store's users for sign-in without passwords.",
    ),
];

fn push(call: &mut Call, before: &str, json: &Json) {
    call.answer.bytes.extend_from_slice(before.as_bytes());
    call.answer.bytes.extend_from_slice(json.to_string().as_bytes());
}

/// Writes the newest rows of a resource, those of one user or of all users.
fn push_newest(
    call: &mut Call,
    tx: &mut Tx<'_>,
    before: &str,
    shape: &'static Shape,
    user: Option<&Value>,
) -> Result<(), Problem> {
    call.answer.bytes.extend_from_slice(before.as_bytes());
    let condition = |sql: &mut Sql| {
        if let Some(user) = user {
            sql.add(" AND t.user_id = ");
            sql.add_bound(user.clone());
        }
    };
    write_items(call, tx, shape, None, &condition, NEWEST)
}

fn of_user(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = USER.read_key(call.request.parameter(0))?;
    let policy = policy(&call.context)?;
    let people = facts::people(&call.context, tx, |sql| sql.push(" AND t.id = ").bind(key.clone()))?;
    let person = people.first().ok_or_else(|| Problem::not_found("User"))?;
    push(call, "{\"user\":", &person.user());
    push(call, ",\"readiness\":", &person.readiness(&policy, call.context.now).0);
    let credentials = credentials(call, tx, person.id, &policy)?;
    push(call, ",\"credentials\":", &credentials);
    push_newest(call, tx, ",\"temporaryAccessPasses\":", &ACCESS_PASS, Some(&key))?;
    push_newest(call, tx, ",\"recoveryTransactions\":", &RECOVERY, Some(&key))?;
    push_newest(call, tx, ",\"securityEvents\":", &EVENT, Some(&key))?;
    call.answer.bytes.push(b'}');
    Ok(Answer::resource(call.request.op.status))
}

/// A user's passkeys in their JSON form, extended by their usability.
fn credentials(
    call: &mut Call,
    tx: &mut Tx<'_>,
    user: chancery_record::Uuid,
    policy: &Policy,
) -> Result<Json, Problem> {
    let owner = find_owner(&call.context, tx, &USER, user)?;
    let before = call.answer.bytes.len();
    write_items(call, tx, &PASSKEY, Some(&owner), &|_| (), " ORDER BY t.id LIMIT 100")?;
    let written = call.answer.bytes.split_off(before);
    let mut passkeys: Vec<serde_json::Map<String, Json>> =
        serde_json::from_slice(&written).unwrap_or_default();
    let snapshot = authenticator_model::snapshot(&call.context, tx)?;
    let models = AuthenticatorModels::new(snapshot.as_deref(), call.context.now);
    for passkey in &mut passkeys {
        let aaguid = aaguid(passkey.get("aaguidHex"));
        let usable = is_usable(
            policy,
            &CredentialFacts {
                aaguid,
                created_on: Timestamp(0),
                last_used_on: None,
                is_backed_up: false,
                is_backup_eligible: false,
                has_undesired_status: models.is_undesired(aaguid),
            },
        );
        passkey.insert("isUsable".into(), usable.into());
        passkey.insert("authenticatorName".into(), models.name(aaguid).into());
    }
    Ok(passkeys.into())
}

fn aaguid(hex: Option<&Json>) -> [u8; 16] {
    let number = hex.and_then(Json::as_str).and_then(|hex| u128::from_str_radix(hex, 16).ok());
    number.unwrap_or_default().to_be_bytes()
}

fn of_store(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let users = users(&call.context, tx)?;
    let mut moment = Vec::new();
    format_timestamp(call.context.now, &mut moment);
    push(call, "{\"generatedOn\":", &String::from_utf8(moment).unwrap_or_default().into());
    push(call, ",\"users\":", &users.into());
    push_newest(call, tx, ",\"temporaryAccessPasses\":", &ACCESS_PASS, None)?;
    push_newest(call, tx, ",\"recoveryTransactions\":", &RECOVERY, None)?;
    push_newest(call, tx, ",\"securityEvents\":", &EVENT, None)?;
    call.answer.bytes.push(b'}');
    Ok(Answer::resource(call.request.op.status))
}

/// The users of a store: first those who are not ready, then the others.
fn users(context: &Context, tx: &mut Tx<'_>) -> Result<Vec<Json>, Problem> {
    let policy = policy(context)?;
    let (mut blocked, mut ready) = (Vec::new(), Vec::new());
    let mut after = 0;
    while blocked.len() < MAX_USERS {
        let order = format!(" ORDER BY t.rid LIMIT {LIST}");
        let people = facts::people(context, tx, |sql| sql.push(" AND t.rid > ").bind(after).push(&order))?;
        let Some(last) = people.last() else { break };
        after = last.rid;
        for person in &people {
            let (readiness, is_ready) = person.readiness(&policy, context.now);
            let group = if is_ready { &mut ready } else { &mut blocked };
            if group.len() < MAX_USERS {
                group.push(json!({ "user": person.user(), "readiness": readiness }));
            }
        }
    }
    blocked.extend(ready);
    blocked.truncate(MAX_USERS);
    Ok(blocked)
}
