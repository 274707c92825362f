//! Temporary access passes: a value with which a user can sign in once, or for a while. Only its digest is
//! stored.

use chancery_credential::typed::read_code;
use chancery_record::{
    Bytes, FIXED, HIDDEN, KEY, Name, OPEN, Record as _, SHOWN, Secret, Timestamp, Uuid, Value, choice_types,
    id_types, record, secret_types,
};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{
    Action as A, Answer, AuditAction, Body, BodyForm, Call, Context, Custom, JsonForm, Method as M, Op,
    Permit::UserStore, Problem, Reach, Reply, Shape, Tx, answer_form, check_if_match, event_name, insert,
    list_where, load, load_rows, new_row, random, read_form, selectable, update_unversioned,
};
use serde_json::json;

use super::event::{self, EventType};
use crate::{
    UserId,
    attempt::begin_attempt,
    password::{by_login, options},
    user::{USER, UserForUpdate, is_still_valid},
};

id_types! {
    /// The id of a temporary access pass.
    PassId
}

choice_types! {
    /// The status of a pass.
    PassStatus {
        /// It is not valid yet.
        NotYetValid,
        /// It is valid.
        Active,
        /// It was used, once.
        Used,
        /// It expired.
        Expired,
        /// It was revoked.
        Revoked,
    }
}

record! {
    /// A temporary access pass. Its value was returned when it was created, and is not stored.
    #[de("Zugangspass", "Zugangspässe", "Ein Zugangspass. Sein Wert wurde beim Anlegen gezeigt und ist nicht gespeichert.")]
    pub struct TemporaryAccessPass {
        /// The temporary access pass.
        id: PassId = KEY,
        /// The user.
        user_id: UserId = FIXED,
        /// When it was created.
        created_on: Timestamp = SHOWN,
        /// Time from which the pass is valid.
        valid_from: Timestamp = SHOWN,
        /// Time at which the pass expires.
        expires_on: Timestamp = SHOWN,
        /// Whether the pass can be used only once.
        is_one_time_use: bool = SHOWN,
        /// The status.
        status: PassStatus = SHOWN,
        /// When it was last used.
        used_on: Option<Timestamp> = SHOWN,
        /// The actor that created the pass.
        #[de("Angelegt von")]
        created_by_actor_id: Option<Uuid> = SHOWN,
        /// What is stored of its value.
        digest: Bytes = HIDDEN,
    }
}

/// The shape of temporary access passes.
pub static ACCESS_PASS: Shape =
    Shape::of::<TemporaryAccessPass>("TemporaryAccessPass", "temporary_access_pass", Reach::Store)
        .read_from(
            "(SELECT rid, store, id, user_id, created_on, valid_from, expires_on, is_one_time_use, \
             CASE WHEN status = 'Active' AND expires_on <= ?1 THEN 'Expired' \
             WHEN status = 'Active' AND valid_from > ?1 THEN 'NotYetValid' ELSE status END AS status, \
             used_on, created_by_actor_id, digest, last_entry FROM temporary_access_pass)",
        )
        .of_person(&USER, TemporaryAccessPass::USER_ID);

record! {
    /// The request for a temporary access pass: its user and its validity.
    pub struct NewPass {
        /// The user.
        user_id: UserId = OPEN,
        /// Time from which the pass is valid. Without it, the pass is valid from now on.
        #[de(_, "Zeitpunkt, ab dem der Zugangspass gilt. Ohne Angabe gilt er ab sofort.")]
        valid_from: Option<Timestamp> = OPEN,
        /// Lifetime in minutes. Without it, the store's option TemporaryAccessPassDefaultLifetime applies.
        #[de(_, "Gültigkeitsdauer in Minuten. Ohne Angabe gilt die Einstellung TemporaryAccessPassDefaultLifetime des Speichers.")]
        lifetime_minutes: Option<i64> = OPEN,
        /// Whether the pass can be used only once. If missing, the option TemporaryAccessPassOneTimeUse of the store applies.
        #[de(
            _,
            "Ob der Pass nur einmal verwendet werden kann. Fehlt die Angabe, gilt die Einstellung TemporaryAccessPassOneTimeUse des Speichers."
        )]
        is_one_time_use: Option<bool> = OPEN,
    }
}

secret_types! {
    /// The value of a pass as a body holds it.
    PassValue(&Name::RULE);
}

record! {
    /// The login name of a user and the value of the temporary access pass that the user uses.
    pub struct Redemption {
        /// The login name.
        login_name: Name = OPEN.like("ada"),
        /// The value.
        value: PassValue = OPEN,
    }
}

record! {
    /// The use of a temporary access pass by a user.
    pub struct Entry {
        /// The user.
        user_id: UserId = SHOWN,
        /// The temporary access pass.
        #[de("Zugangspass")]
        temporary_access_pass_id: PassId = SHOWN,
        /// The date and time.
        #[de("Eingelöst am")]
        redeemed_on: Timestamp = SHOWN,
    }
}

static NEW: BodyForm = BodyForm::of::<NewPass>("NewTemporaryAccessPass");
static REDEMPTION: BodyForm = BodyForm::of::<Redemption>("TemporaryAccessPassRedemption");
static REDEEMED: BodyForm = BodyForm::of::<Entry>("TemporaryAccessPassRedeemed");
static ISSUED: JsonForm = JsonForm {
    name: "TemporaryAccessPassIssued",
    schema: || {
        json!({
            "description": "A new temporary access pass with its value. The value is returned in this response and never again.",
            "allOf": [
                { "$ref": "#/components/schemas/TemporaryAccessPass" },
                { "type": "object", "required": ["value"], "properties": {
                    "value": { "type": "string", "description": "The value that the user enters." },
                } },
            ],
        })
    },
};

const ALL: &str = "/administration/passkey-security/temporary-access-passes";

const fn op(name: &'static str, method: M, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &ACCESS_PASS, A::Custom(custom), summary)
}

/// The operations on temporary access passes.
pub static OPERATIONS: &[Op] = &[
    op(
        "ListTemporaryAccessPasses",
        M::Get,
        ALL,
        Custom::listing(|call, tx| list_where(call, tx, &|_| ())).replying(Reply::Items),
        "Lists the temporary access passes.",
    ),
    op(
        "IssueTemporaryAccessPass",
        M::Post,
        ALL,
        Custom::writing(issue).taking(Body::Form(&NEW)),
        "Creates a temporary access pass for a user.",
    )
    .answering(201, Reply::Json(&ISSUED))
    .added(),
    op(
        "RevokeTemporaryAccessPass",
        M::Delete,
        "/administration/passkey-security/temporary-access-passes/{id}",
        Custom::writing(revoke).replying(Reply::Empty),
        "Revokes a temporary access pass.",
    )
    .answering(204, Reply::Empty)
    .added(),
    op(
        "RedeemTemporaryAccessPass",
        M::Post,
        "/administration/passkey-security/temporary-access-passes/redemption",
        Custom::writing(redeem).taking(Body::Form(&REDEMPTION)).replying(Reply::Form(&REDEEMED)),
        "Redeems a temporary access pass.",
    )
    .added(),
];

/// Letters and digits that are not mistaken for one another: 32, so that a random byte picks each equally
/// often.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const MINUTE: i64 = 60_000;

fn generate_value(length: usize) -> Secret {
    let letters = random::<64>();
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied().unwrap_or(b'A');
    Secret::new(letters.iter().take(length).map(letter).collect::<Vec<u8>>())
}

/// The digest of a value, as a person may type it.
fn digest(context: &Context, user: Uuid, value: &[u8]) -> Vec<u8> {
    let normalized = Secret::new(read_code(&String::from_utf8_lossy(value)));
    context.app.master.digest(&format!("temporary-access-pass/{user}"), normalized.expose())
}

/// The user in a body.
pub fn user_in_body(context: &Context, tx: &mut Tx<'_>, user: UserId) -> Result<UserForUpdate, Problem> {
    match load(context, tx, &USER, None, Value::Id(user.0)) {
        Err(problem) if problem.status() == 404 => {
            Err(Problem::wrong_field(NewPass::USER_ID, "names no user of this store"))
        }
        loaded => loaded.and_then(UserForUpdate::new),
    }
}

fn issue(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: NewPass = read_form(call)?;
    let options = options(&call.context)?;
    if !options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED) {
        return Err(Problem::conflict("The store's option TemporaryAccessPassEnabled is off."));
    }
    let max_lifetime = options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_MAX_LIFETIME);
    let lifetime = match form.lifetime_minutes {
        Some(minutes) => minutes.saturating_mul(MINUTE),
        None => options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_DEFAULT_LIFETIME).min(max_lifetime),
    };
    if lifetime < MINUTE || lifetime > max_lifetime {
        let detail = format!(
            "must be from 1 to {}, the store's TemporaryAccessPassMaxLifetime",
            max_lifetime / MINUTE
        );
        return Err(Problem::wrong_field(NewPass::LIFETIME_MINUTES, detail));
    }
    let loaded = user_in_body(&call.context, tx, form.user_id)?;
    let valid_from = form.valid_from.unwrap_or(call.context.now).max(call.context.now);
    let length = usize::try_from(options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_LENGTH)).unwrap_or(12);
    let value = generate_value(length);
    let pass = TemporaryAccessPass {
        id: PassId(call.context.new_id()),
        user_id: loaded.user.id,
        created_on: call.context.now,
        valid_from,
        expires_on: valid_from.plus(lifetime),
        is_one_time_use: form
            .is_one_time_use
            .unwrap_or_else(|| options.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ONE_TIME_USE)),
        status: PassStatus::Active,
        used_on: None,
        created_by_actor_id: call.context.actor,
        digest: Bytes(digest(&call.context, loaded.user.id.0, value.expose())),
    };
    let id = pass.id.0;
    let values = new_row(&call.context, &ACCESS_PASS, None, pass.into_values())?;
    insert(&call.context, tx, &ACCESS_PASS, None, &values)?;
    event::record(&call.context, tx, loaded.user.id, EventType::TemporaryAccessPassIssued, None, None)?;
    // read again, since the view derives the status that a list would show
    let stored = load(&call.context, tx, &ACCESS_PASS, None, Value::Id(id))?;
    chancery_resource::write_stored(call, tx, &ACCESS_PASS, &stored)?;
    call.answer.bytes.pop();
    call.answer.bytes.extend_from_slice(b",\"value\":\"");
    call.answer.bytes.extend_from_slice(value.expose());
    call.answer.bytes.extend_from_slice(b"\"}");
    let mut answer = Answer::new(call.request.op.status);
    answer.headers.push(("cache-control", "no-store".into()));
    Ok(answer)
}

fn revoke(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let key = ACCESS_PASS.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &ACCESS_PASS, None, key)?;
    check_if_match(call, tx, &ACCESS_PASS, &was)?;
    let mut pass = TemporaryAccessPass::from_values(was.values.clone())?;
    if !matches!(pass.status, PassStatus::Active | PassStatus::NotYetValid) {
        return Err(Problem::conflict(format!("The pass is {} already.", pass.status.name())));
    }
    let user = pass.user_id;
    pass.status = PassStatus::Revoked;
    update_unversioned(
        &call.context,
        tx,
        &ACCESS_PASS,
        &was,
        &pass.into_values(),
        AuditAction::Modified(event_name!("revoked")),
    )?;
    event::record(&call.context, tx, user, EventType::TemporaryAccessPassRevoked, None, None)?;
    Ok(Answer::new(call.request.op.status))
}

/// Revokes the passes of a user who was restored from the deletion quarantine: none outlives it.
pub fn revoke_passes(context: &Context, tx: &mut Tx<'_>, user: UserId) -> Result<(), Problem> {
    let mut open = Vec::new();
    let text = "SELECT rid FROM temporary_access_pass WHERE store = ?1 AND user_id = ?2 AND status = 'Active' LIMIT 512";
    tx.query(text, &[context.scope.store().into(), user.0.into()], |row| {
        open.push(row.int(0)?);
        Ok(())
    })?;
    revoke_rows(context, tx, &open)
}

/// Revokes up to 512 passes of a user store that are valid or will be, after a restore; returns their number. Fewer than 512: there
/// are no more.
pub fn revoke_open_passes(context: &Context, tx: &mut Tx<'_>) -> Result<usize, Problem> {
    let mut open = Vec::new();
    let text = "SELECT rid FROM temporary_access_pass WHERE store = ?1 AND status = 'Active' AND expires_on > ?2 \
        ORDER BY rid LIMIT 512";
    tx.query(text, &[context.scope.store().into(), context.now.0.into()], |row| {
        open.push(row.int(0)?);
        Ok(())
    })?;
    revoke_rows(context, tx, &open)?;
    Ok(open.len())
}

fn revoke_rows(context: &Context, tx: &mut Tx<'_>, rids: &[i64]) -> Result<(), Problem> {
    for was in load_rows(context, tx, &ACCESS_PASS, rids)? {
        let mut pass = TemporaryAccessPass::from_values(was.values.clone())?;
        pass.status = PassStatus::Revoked;
        update_unversioned(
            context,
            tx,
            &ACCESS_PASS,
            &was,
            &pass.into_values(),
            AuditAction::Modified(event_name!("revoked")),
        )?;
    }
    Ok(())
}

/// Redeems a pass. Attempts count towards the locks like attempts at a password.
fn redeem(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: Redemption = read_form(call)?;
    let refused = || {
        Problem::wrong_field(
            Redemption::VALUE,
            "is not accepted, or the user's state does not let the user in now",
        )
    };
    let known = by_login(&call.context, tx, form.login_name.as_str())?;
    let Some(attempt) = begin_attempt(&call.context, tx, known)? else {
        // takes as long for an unknown user
        find(&call.context, tx, Uuid::nil(), &form.value.0)?;
        return Ok(Answer::refusing(refused()));
    };
    let Some(id) = find(&call.context, tx, attempt.loaded.user.id.0, &form.value.0)? else {
        attempt.fail(&call.context, tx)?;
        return Ok(Answer::refusing(refused()));
    };
    let user = attempt.loaded.user.id;
    attempt.succeed(&call.context, tx)?;
    note_use(&call.context, tx, user, id)?;
    let redeemed_on = call.context.now;
    Ok(answer_form(call, Entry { user_id: user, temporary_access_pass_id: PassId(id), redeemed_on }))
}

/// Records the use of a pass; a one-time pass is used up.
pub fn note_use(context: &Context, tx: &mut Tx<'_>, user: UserId, id: Uuid) -> Result<(), Problem> {
    let was = load(context, tx, &ACCESS_PASS, None, Value::Id(id))?;
    let mut pass = TemporaryAccessPass::from_values(was.values.clone())?;
    // each use is audited, also two within a millisecond
    pass.used_on = Some(pass.used_on.map_or(context.now, |before| context.now.max(Timestamp(before.0 + 1))));
    if pass.is_one_time_use {
        pass.status = PassStatus::Used;
    }
    let action = AuditAction::Modified(event_name!("used"));
    update_unversioned(context, tx, &ACCESS_PASS, &was, &pass.into_values(), action)?;
    event::record(context, tx, user, EventType::TemporaryAccessPassUsed, None, None)
}

selectable! {
    /// A pass of a user that is valid at a time.
    struct ValidPass from "FROM temporary_access_pass WHERE store = ?1 AND user_id = ?2 \
        AND status = 'Active' AND valid_from <= ?3 AND expires_on > ?3 ORDER BY rid DESC LIMIT 100" {
        id: Uuid = "id",
        digest: Vec<u8> = "digest",
        creator: Option<Uuid> = "created_by_actor_id",
    }
}

/// Whether the user has a pass that is valid now, and passes are enabled.
pub fn has_any(context: &Context, tx: &mut Tx<'_>, user: UserId) -> Result<bool, Problem> {
    let parameters = [context.scope.store().into(), user.0.into(), context.now.0.into()];
    let is_enabled = options(context)?.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED);
    Ok(is_enabled && tx.one(ValidPass::SELECT, &parameters, |_| Ok(()))?.is_some())
}

/// The user's pass with this value, if it is valid now and passes are enabled. A pass of a creator who holds less than the user
/// carries now is not valid: it may have been created before the user got a role.
pub fn find(context: &Context, tx: &mut Tx<'_>, user: Uuid, value: &Secret) -> Result<Option<Uuid>, Problem> {
    if !options(context)?.get(UserStoreOption::TEMPORARY_ACCESS_PASS_ENABLED) {
        return Ok(None);
    }
    let expected = Secret::new(digest(context, user, value.expose()));
    let mut matching = None;
    let parameters = [context.scope.store().into(), user.into(), context.now.0.into()];
    tx.query(ValidPass::SELECT, &parameters, |row| {
        let pass = ValidPass::read(row)?;
        if expected.matches(&pass.digest) {
            matching = Some(pass);
        }
        Ok(())
    })?;
    Ok(match matching {
        Some(pass) if pass.creator.is_some() && !is_still_valid(context, tx, UserId(user), pass.creator)? => {
            None
        }
        // the server itself creates the pass of the first administrator
        matching => matching.map(|pass| pass.id),
    })
}
