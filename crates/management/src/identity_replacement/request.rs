//! Requests a replacement.

use chancery_record::{FieldOf, FieldType, Ids, Name, Record as _, Token, Uuid, Value};
use chancery_resource::{
    Answer, Call, Context, Problem, ProblemKind, Proofs, StoredRow, Tx, digest, insert, load, load_by,
    new_row, read_form, select_where, write_stored,
};

use super::{
    IDENTITY_REPLACEMENT,
    identity::{PlatformUser, holder, optional, requested_identity},
    record::{IdentityReplacement, IdentityReplacementId, NewIdentityReplacement, ReplacementStatus},
    transition::expire,
};

const MINUTE: i64 = 60_000;

/// The SHA-256 over the canonical JSON of the replacement settings.
fn fingerprint(proofs: Proofs) -> String {
    digest(&format!("{{\"proofs\":\"{}\"}}", proofs.name()))
}

pub fn request(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: NewIdentityReplacement = read_form(call)?;
    if call.context.acting.is_some() {
        let detail = "Who asks is who cannot approve: ask with a token that was not exchanged for another's.";
        return Err(Problem::new(ProblemKind::Forbidden, detail));
    }
    if form.reason.as_str().trim().is_empty() {
        return Err(Problem::wrong_field(
            NewIdentityReplacement::REASON,
            "is empty: say why the identity is replaced",
        ));
    }
    let user = form.platform_user_id;
    let no_user =
        || Problem::wrong_field(NewIdentityReplacement::PLATFORM_USER_ID, "names no ApplicationUser");
    let person = optional(PlatformUser::find(&call.context, tx, user.0))?.filter(|person| !person.is_hidden);
    let person = person.ok_or_else(no_user)?;
    let target = requested_identity(&call.context, tx, &form)?;
    let fingerprint = fingerprint(call.context.app.proofs);
    if form.policy_fingerprint.is_some_and(|given| !given.as_str().eq_ignore_ascii_case(&fingerprint)) {
        let detail = format!("The replacement settings are other ones: their fingerprint is {fingerprint}.");
        return Err(Problem::conflict(detail));
    }
    if find_open(&mut call.context, tx, IdentityReplacement::OPEN_USER_ID, user.0)?.is_some() {
        let detail =
            "A replacement of an identity of this platform user is open. Execute or cancel it first.";
        return Err(Problem::conflict(detail));
    }
    if let Some(holder) = holder(tx, &target)? {
        // closes another platform user's expired request, which may still hold the identity
        find_open(&mut call.context, tx, IdentityReplacement::REPLACEMENT_IDENTITY_ID, holder.identity)?;
    }
    let current = person.current(&mut call.context, tx)?;
    let replacement = person.reserve(&mut call.context, tx, &target)?;
    let id = IdentityReplacementId(call.context.new_id());
    let internal = |wrong| Problem::invalid(format!("The fingerprint {wrong}."));
    let record = IdentityReplacement {
        id,
        platform_user_id: user,
        current_identity_id: current,
        replacement_identity_id: replacement,
        status: ReplacementStatus::PendingApproval,
        requested_by_actor_id: call.context.actor,
        reason: form.reason,
        required_approvals: form.required_approvals,
        approved_by_actor_ids: Ids::default(),
        requested_on: call.context.now,
        expires_on: call.context.now.plus(form.lifetime_minutes.0 * MINUTE),
        current_identity_proven_on: None,
        replacement_identity_proven_on: None,
        approval_satisfied_on: None,
        executed_on: None,
        revocation_completed_on: None,
        revocation_attempts: 0,
        revocation_due_on: None,
        revocation_error: None,
        policy_fingerprint: Name::new(fingerprint).map_err(internal)?,
        replacement_idp_instance_id: target.instance,
        replacement_issuer: target.issuer,
        replacement_subject: target.subject,
        replacement_is_user_store: target.is_user_store,
        open_user_id: Some(user.0),
        concurrency_token: Token::from_value(call.context.new_token())?,
    };
    let values = new_row(&call.context, &IDENTITY_REPLACEMENT, None, record.into_values())?;
    insert(&call.context, tx, &IDENTITY_REPLACEMENT, None, &values)?;
    answer(call, tx, id.0)
}

/// The open request with this id in a field. An expired one is closed, and not returned.
fn find_open<T: FieldType>(
    context: &mut Context,
    tx: &mut Tx<'_>,
    field: FieldOf<IdentityReplacement, T>,
    id: Uuid,
) -> Result<Option<StoredRow>, Problem> {
    let found = context.on_configuration(|context| {
        let sql = select_where(context, &IDENTITY_REPLACEMENT, field, Value::Id(id));
        let sql = sql.push(" AND t.open_user_id IS NOT NULL");
        optional(load_by(context, tx, &IDENTITY_REPLACEMENT, None, &sql))
    })?;
    let Some(was) = found else { return Ok(None) };
    let replacement = IdentityReplacement::from_values(was.values.clone())?;
    if replacement.status != ReplacementStatus::Expired {
        return Ok(Some(was));
    }
    expire(context, tx, &was, replacement)?;
    Ok(None)
}

/// Responds with the current state of a replacement.
pub fn answer(call: &mut Call, tx: &mut Tx<'_>, id: Uuid) -> Result<Answer, Problem> {
    let stored = load(&call.context, tx, &IDENTITY_REPLACEMENT, None, Value::Id(id))?;
    write_stored(call, tx, &IDENTITY_REPLACEMENT, &stored)?;
    Ok(Answer::resource(call.request.op.status))
}
