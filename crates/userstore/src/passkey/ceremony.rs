//! WebAuthn ceremonies, registration and authentication: each begins with one call and finishes with
//! another.

use std::sync::Arc;

use chancery_passkey::{
    AuthenticationResult, AuthenticatorModels, CeremonyRefusal, Credential, Policy, RefusalKind,
    User as Person,
};
use chancery_record::{Bytes, Name, OPEN, Record as _, SHOWN, Timestamp, Uuid, Value, parse_id, record};
use chancery_resource::{
    Answer, AuditAction, BodyForm, Call, Context, OwnerRow, Problem, Purpose, StateTable, StoreError,
    StoredRow, Tx, Work, answer_form, audit_trail::Digest, event_name, find_owner, insert, load_by, new_row,
    owner_of, read_form, select_of, selectable, update_unversioned, write_stored,
};
use chancery_trust::Snapshot;
use serde_json::{Value as Json, json};

use super::{
    PASSKEY, PasskeyCredential, PasskeyId, authenticator_model,
    event::{self, EventType},
    policy,
};
use crate::{
    InstanceId, UserId,
    password::{by_login, mail::display_name},
    user::{USER, UserForUpdate},
};

/// The lifetime of a ceremony, in milliseconds.
const LIFETIME: i64 = 5 * 60 * 1000;
/// The maximum number of passkeys of one user.
const MAX_PASSKEYS: usize = 100;

record! {
    /// The user to authenticate.
    pub struct StartAuthentication {
        /// The login name. Without it, any user with a passkey on the device can authenticate.
        #[de(_, "Der Anmeldename. Ohne Angabe kann sich jeder Benutzer authentifizieren, der auf dem Gerät einen Passkey hat.")]
        login_name: Option<Name> = OPEN.like("ada"),
    }
}

record! {
    /// The authenticated user and the passkey that was used.
    pub struct AuthenticatedPasskey {
        /// The user.
        user_id: UserId = SHOWN,
        /// The passkey.
        credential_id: PasskeyId = SHOWN,
        /// The date and time.
        #[de("Nachgewiesen am")]
        authenticated_on: Timestamp = SHOWN,
    }
}

pub static START: BodyForm = BodyForm::of::<StartAuthentication>("PasskeyAuthenticationStart");
pub static AUTHENTICATED: BodyForm = BodyForm::of::<AuthenticatedPasskey>("PasskeyAuthenticated");

/// A refusal as a problem. It names the invalid proof: only the client can correct it.
fn refuse(refusal: &CeremonyRefusal) -> Problem {
    match refusal.kind {
        RefusalKind::Disabled | RefusalKind::AlreadyRegistered => Problem::conflict(refusal.detail.clone()),
        _ => Problem::invalid(refusal.detail.clone()),
    }
}

fn associated_data(id: Uuid) -> String {
    format!("passkey_ceremony/{id}")
}

/// Stores a ceremony's state, sealed, and responds with the options for the client.
fn begin(
    call: &mut Call,
    tx: &mut Tx<'_>,
    user: Option<i64>,
    is_registration: bool,
    public_key: &Json,
    state: &[u8],
) -> Result<Answer, Problem> {
    let id = call.context.new_id();
    tx.queue(
        &StateTable::PasskeyCeremony.insert(
            "(id, store, user_rid, is_registration, state, expires_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        ),
        vec![
            id.into(),
            call.context.scope.store().into(),
            user.into(),
            is_registration.into(),
            call.context.app.master.seal(&associated_data(id), state).into(),
            (call.context.now.0 + LIFETIME).into(),
        ],
    )?;
    let body = json!({ "ceremonyId": id, "publicKey": public_key });
    call.answer.bytes = body.to_string().into_bytes();
    Ok(Answer::new(call.request.op.status))
}

selectable! {
    /// A ceremony that began.
    struct Ceremony {
        user: Option<i64> = "user_rid",
        sealed_state: Vec<u8> = "state",
        expires_on: Timestamp = "expires_on",
    }
}

/// Deletes a ceremony and returns its user and state: it is finished once, whatever the outcome.
fn take(
    context: &Context,
    tx: &mut Tx<'_>,
    id: &str,
    is_registration: bool,
) -> Result<(Option<i64>, Vec<u8>), Problem> {
    let not_found = || Problem::not_found("ceremony, or it was finished or took too long");
    let id = parse_id(id).ok_or_else(not_found)?;
    let text = StateTable::PasskeyCeremony.delete(format_args!(
        "WHERE id = ?1 AND store = ?2 AND is_registration = ?3 RETURNING {}",
        Ceremony::COLUMNS
    ));
    let parameters = [id.into(), context.scope.store().into(), is_registration.into()];
    let ceremony = tx.returning(&text, &parameters, Ceremony::read)?.ok_or_else(not_found)?;
    let state =
        context.app.master.open(&associated_data(id), &ceremony.sealed_state).ok_or_else(not_found)?;
    if ceremony.expires_on <= context.now {
        Err(not_found())
    } else {
        Ok((ceremony.user, state.expose().to_vec()))
    }
}

/// A stored passkey, with its row.
struct StoredPasskey {
    row: StoredRow,
    credential: Credential,
}

/// The passkeys of a user.
pub fn of_user(tx: &mut Tx<'_>, user: i64) -> Result<Vec<Credential>, Problem> {
    let text =
        format!("SELECT kept FROM passkey_credential WHERE user_rid = ?1 ORDER BY rid LIMIT {MAX_PASSKEYS}");
    let mut stored = Vec::new();
    tx.query(&text, &[user.into()], |row| {
        stored.push(row.bytes(0)?.to_vec());
        Ok(())
    })?;
    stored.iter().map(|bytes| open(bytes)).collect()
}

/// Decodes a stored passkey. If that fails, it is an internal error and not the caller's mistake.
fn open(stored: &[u8]) -> Result<Credential, Problem> {
    let broken = |refusal: CeremonyRefusal| {
        StoreError::Internal(format!("a kept passkey cannot be read: {}", refusal.detail))
    };
    Ok(Credential::from_bytes(stored).map_err(broken)?)
}

pub fn start_registration(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let loaded = UserForUpdate::in_path(call, tx)?;
    let owner = owner_of(call, tx, &PASSKEY)?.ok_or_else(|| Problem::not_found("User"))?;
    let existing: Vec<Vec<u8>> = of_user(tx, owner.rid)?.into_iter().map(|one| one.id).collect();
    if existing.len() >= MAX_PASSKEYS {
        return Err(Problem::conflict(format!("A user has at most {MAX_PASSKEYS} passkeys.")));
    }
    let person = Person {
        id: loaded.user.id.0,
        login_name: loaded.user.login_name.as_str().to_owned(),
        display_name: display_name(&loaded.user),
    };
    let policy = policy(&call.context)?;
    let started = chancery_passkey::start_registration(&policy, &person, &existing);
    let (public_key, state) = started.map_err(|refusal| refuse(&refusal))?;
    begin(call, tx, Some(owner.rid), true, &public_key, &state)
}

/// The result of verifying a registration.
type Registered = Result<Credential, CeremonyRefusal>;

pub fn finish_registration(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner_of(call, tx, &PASSKEY)?.ok_or_else(|| Problem::not_found("User"))?;
    let Some(registered) = call.result::<Registered>() else {
        let (user, state) = take(&call.context, tx, call.request.parameter(1), true)?;
        if user != Some(owner.rid) {
            return Err(Problem::not_found("ceremony of this user"));
        }
        let (policy, answer) = (policy(&call.context)?, answer(call)?);
        let (snapshot, now) = (authenticator_model::snapshot(&call.context, tx)?, call.context.now);
        return Ok(Answer::after(Work::new(Purpose::Passkey, move || -> Registered {
            let models = AuthenticatorModels::new(snapshot.as_deref(), now);
            chancery_passkey::finish_registration(&policy, models, &state, &answer)
        })));
    };
    let credential = match registered.as_ref() {
        Ok(credential) => credential,
        Err(refusal) => return Ok(Answer::refusing(refuse(refusal))),
    };
    let values = store(&call.context, tx, &owner, credential)?;
    write_stored(call, tx, &PASSKEY, &StoredRow { rid: 0, last_entry: 0, values, owner: Some(owner) })?;
    Ok(Answer::resource(call.request.op.status))
}

/// Stores a new passkey.
///
/// # Errors
/// A conflict if it exists already.
pub fn store(
    context: &Context,
    tx: &mut Tx<'_>,
    owner: &OwnerRow,
    credential: &Credential,
) -> Result<Vec<Value>, Problem> {
    let internal = |_| Problem::from(StoreError::Internal("a passkey's own name is not valid".into()));
    let passkey = PasskeyCredential {
        id: PasskeyId(context.new_id()),
        user_id: UserId(owner.id),
        name: Name::new("Passkey").map_err(internal)?,
        credential_id_base64: Bytes(credential.id.clone()),
        aaguid_hex: Digest(credential.aaguid.to_vec()),
        created_on: context.now,
        last_used_on: None,
        instance_id: InstanceId(context.scope.of_store()?.id),
        is_backup_eligible: credential.is_backup_eligible,
        is_backed_up: credential.is_backed_up,
        set_by: None,
        kept: Bytes(credential.to_bytes()),
    };
    let id = passkey.id.0;
    let values = new_row(context, &PASSKEY, Some(owner), passkey.into_values())?;
    insert(context, tx, &PASSKEY, Some(owner), &values)?;
    event::record(context, tx, UserId(owner.id), EventType::PasskeyRegistered, Some(id), None)?;
    Ok(values)
}

/// The body as it was sent, for the library that reads it.
fn answer(call: &Call) -> Result<Json, Problem> {
    Ok(call.request.body()?.to_serde())
}

pub fn start_authentication(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: StartAuthentication = read_form(call)?;
    let policy = policy(&call.context)?;
    let (mut user, mut allowed) = (None, None);
    if let Some(name) = form.login_name {
        // an unknown login name gets a ceremony that cannot be finished, so that the response does not differ
        let known = by_login(&call.context, tx, name.as_str())?;
        let mut credentials = Vec::new();
        if let Some(loaded) = known {
            let owner = find_owner(&call.context, tx, &USER, loaded.user.id.0)?;
            credentials = of_user(tx, owner.rid)?;
            user = Some(owner.rid);
        }
        allowed = Some(credentials);
    }
    let started = chancery_passkey::start_authentication(&policy, allowed.as_deref());
    let (public_key, state) = started.map_err(|refusal| refuse(&refusal))?;
    begin(call, tx, user, false, &public_key, &state)
}

/// The result of verifying an assertion: the passkey, its user, and the proof.
pub struct VerifiedAssertion {
    id: Uuid,
    user: Uuid,
    result: Result<AuthenticationResult, CeremonyRefusal>,
}

impl VerifiedAssertion {
    /// The user.
    pub const fn user(&self) -> Uuid {
        self.user
    }
}

pub fn finish_authentication(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    match call.result::<VerifiedAssertion>() {
        None => check(call, tx),
        Some(proved) => finish(call, tx, &proved),
    }
}

fn check(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (expected, state) = take(&call.context, tx, call.request.parameter(0), false)?;
    let answer = answer(call)?;
    let assertion = match recognize(&call.context, tx, answer)? {
        Ok(Some(assertion)) if expected.is_none_or(|expected| expected == assertion.user_rid) => assertion,
        Ok(_) => return Ok(Answer::refusing(Problem::invalid("The passkey is not known here."))),
        Err(refusal) => return Ok(Answer::refusing(refuse(&refusal))),
    };
    Ok(Answer::after(Work::new(Purpose::Passkey, move || assertion.verify(&state))))
}

/// An assertion of an authenticator, with its passkey.
pub struct Assertion {
    user_rid: i64,
    user: Uuid,
    passkey: Uuid,
    credential: Credential,
    policy: Policy,
    snapshot: Option<Arc<Snapshot>>,
    answer: Json,
    now: Timestamp,
}

selectable! {
    /// A passkey with its user.
    struct PasskeyOfUser from "FROM passkey_credential p JOIN user_account u ON u.rid = p.user_rid \
        WHERE p.store = ?1 AND p.credential_id = ?2 AND u.quarantined_on IS NULL" {
        user: Uuid = "u.id",
        user_rid: i64 = "u.rid",
        passkey: Uuid = "p.id",
    }
}

/// Finds the passkey of an assertion in the store; `None` if it is unknown.
///
/// # Errors
/// The inner error: the assertion cannot be read.
pub fn recognize(
    context: &Context,
    tx: &mut Tx<'_>,
    answer: Json,
) -> Result<Result<Option<Assertion>, CeremonyRefusal>, Problem> {
    let id = match chancery_passkey::credential_id_of(&answer) {
        Ok(id) => id,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let key = [context.scope.store().into(), id.into()];
    let found = tx.one(PasskeyOfUser::SELECT, &key, PasskeyOfUser::read)?;
    let Some(PasskeyOfUser { user, user_rid, passkey }) = found else { return Ok(Ok(None)) };
    let stored = find(context, tx, user, passkey)?;
    let (policy, snapshot) = (policy(context)?, authenticator_model::snapshot(context, tx)?);
    let (credential, now) = (stored.credential, context.now);
    Ok(Ok(Some(Assertion { user_rid, user, passkey, credential, policy, snapshot, answer, now })))
}

impl Assertion {
    /// Verifies the assertion.
    pub fn verify(&self, state: &[u8]) -> VerifiedAssertion {
        let models = AuthenticatorModels::new(self.snapshot.as_deref(), self.now);
        let result = chancery_passkey::finish_authentication(
            &self.policy,
            models,
            state,
            &self.answer,
            &self.credential,
        );
        VerifiedAssertion { id: self.passkey, user: self.user, result }
    }
}

fn find(context: &Context, tx: &mut Tx<'_>, user: Uuid, passkey: Uuid) -> Result<StoredPasskey, Problem> {
    let owner = find_owner(context, tx, &USER, user)?;
    let sql = select_of(context, &PASSKEY, &owner).push(" AND t.id = ").bind(passkey);
    let row = load_by(context, tx, &PASSKEY, Some(&owner), &sql)?;
    let record = PasskeyCredential::from_values(row.values.clone())?;
    let credential = open(&record.kept.0)?;
    Ok(StoredPasskey { row, credential })
}

/// Records the outcome of an authentication.
fn finish(call: &mut Call, tx: &mut Tx<'_>, proved: &VerifiedAssertion) -> Result<Answer, Problem> {
    let used = match note_use(&call.context, tx, proved, false)? {
        Ok(used) => used,
        Err(problem) => return Ok(Answer::refusing(problem)),
    };
    let authenticated_on = call.context.now;
    let user_id = UserId(proved.user);
    Ok(answer_form(
        call,
        AuthenticatedPasskey { user_id, credential_id: PasskeyId(used.passkey), authenticated_on },
    ))
}

/// A used passkey.
pub struct UsedPasskey {
    /// The passkey.
    pub passkey: Uuid,
    /// Whether it verified its user.
    pub user_verified: bool,
    /// Whether its key is known to be bound to hardware.
    pub is_hardware: bool,
}

/// Records the use of a passkey, or the reason of a refusal. A temporarily locked user may use one if `opens_lock`.
pub fn note_use(
    context: &Context,
    tx: &mut Tx<'_>,
    proved: &VerifiedAssertion,
    opens_lock: bool,
) -> Result<Result<UsedPasskey, Problem>, Problem> {
    let stored = find(context, tx, proved.user, proved.id)?;
    let user = UserId(proved.user);
    let note = |tx: &mut Tx<'_>, kind: EventType, detail: Option<&str>| {
        event::record(context, tx, user, kind, Some(proved.id), detail)
    };
    let proof = match &proved.result {
        Ok(proof) => proof,
        Err(refusal) => {
            if refusal.kind == RefusalKind::SignCount {
                suspect_clone(context, tx, &stored.row)?;
                note(tx, EventType::PasskeyCloneSuspected, Some(&refusal.detail))?;
            } else {
                note(tx, EventType::PasskeyAuthenticationFailed, Some(&refusal.detail))?;
            }
            return Ok(Err(refuse(refusal)));
        }
    };
    let key = Value::Id(proved.user);
    let loaded = UserForUpdate::new(chancery_resource::load(context, tx, &USER, None, key)?)?;
    let lockout = loaded.user.lockout();
    let is_locked =
        lockout.is_locked_permanently() || (!opens_lock && lockout.is_locked_temporarily(context.now));
    if !loaded.user.is_admitted(context.now) || is_locked {
        note(tx, EventType::PasskeyAuthenticationFailed, Some("the user is inactive or locked"))?;
        return Ok(Err(Problem::invalid("The user's state does not let the user sign in now.")));
    }
    // of two assertions with one count, one comes from a copy: the row decides which is first
    if proof.sign_count != 0 && proof.sign_count <= stored.credential.sign_count {
        suspect_clone(context, tx, &stored.row)?;
        note(tx, EventType::PasskeyCloneSuspected, None)?;
        return Ok(Err(Problem::invalid("The passkey's count of uses went backwards.")));
    }
    let StoredPasskey { row, mut credential } = stored;
    let snapshot = authenticator_model::snapshot(context, tx)?;
    let is_hardware = credential.is_hardware(AuthenticatorModels::new(snapshot.as_deref(), context.now));
    credential.sign_count = proof.sign_count;
    credential.is_backed_up = proof.backed_up;
    let mut record = PasskeyCredential::from_values(row.values.clone())?;
    record.kept = Bytes(credential.to_bytes());
    record.is_backed_up = proof.backed_up;
    record.last_used_on = Some(context.now);
    update_unversioned(context, tx, &PASSKEY, &row, &record.into_values(), AuditAction::Silent)?;
    note(tx, EventType::PasskeyUsed, None)?;
    Ok(Ok(UsedPasskey { passkey: proved.id, user_verified: proof.user_verified, is_hardware }))
}

/// Records that there may be a copy of a passkey. The passkey does not change.
fn suspect_clone(context: &Context, tx: &mut Tx<'_>, row: &StoredRow) -> Result<(), Problem> {
    chancery_resource::audit_state(context, tx, &PASSKEY, row, &row.values, event_name!("clone-suspected"))
}
