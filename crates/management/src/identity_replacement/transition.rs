//! The transitions of a replacement. Each applies to the state that was read, or fails.

use std::collections::BTreeSet;

use chancery_application::{
    APPLICATION_USER, ApplicationUser, GrantReview, check_independence, first_above, roles_of_people,
};
use chancery_record::{Ids, Record as _, Uuid, Value};
use chancery_resource::{
    Answer, Call, CarriedRole, Context, EventName, Problem, ProblemKind, StateTable, StoredRow, Tx, advance,
    check_if_match, event_name, load, read_form, update,
};

use super::{
    IDENTITY_REPLACEMENT,
    identity::{PlatformUser, is_present},
    record::{IdentityReplacement, Proof, ReplacementStatus as Status, WhichIdentity},
    request::answer,
    revocation,
};

/// A replacement: its row and its record.
type Loaded = (StoredRow, IdentityReplacement);

/// The start of a transition: the replacement, or the response if there is no transition.
enum Start {
    /// The replacement is in an allowed state.
    Ready(Box<Loaded>),
    /// There is no transition: this is the response.
    Done(Answer),
}

/// The replacement that the path names, in one of these states. An expired one is closed, and that is
/// committed although the caller is refused.
fn start(call: &mut Call, tx: &mut Tx<'_>, from: &[Status]) -> Result<Start, Problem> {
    let key = IDENTITY_REPLACEMENT.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &IDENTITY_REPLACEMENT, None, key)?;
    check_if_match(call, tx, &IDENTITY_REPLACEMENT, &was)?;
    let replacement = IdentityReplacement::from_values(was.values.clone())?;
    if from.contains(&replacement.status) {
        return Ok(Start::Ready(Box::new((was, replacement))));
    }
    let allowed: Vec<&str> = from.iter().map(|status| status.name()).collect();
    let detail =
        format!("The replacement is {}; it must be {}.", replacement.status.name(), allowed.join(" or "));
    let refusal = Problem::conflict(detail);
    if replacement.status == Status::Expired && replacement.open_user_id.is_some() {
        expire(&mut call.context, tx, &was, replacement)?;
        return Ok(Start::Done(Answer::refusing(refusal)));
    }
    Err(refusal)
}

/// Writes a transition, audited as `event`, and answers with the replacement.
fn commit_transition(
    call: &mut Call,
    tx: &mut Tx<'_>,
    was: &StoredRow,
    replacement: IdentityReplacement,
    event: EventName,
) -> Result<Answer, Problem> {
    let id = replacement.id.0;
    advance(&call.context, tx, &IDENTITY_REPLACEMENT, was, replacement.into_values(), event)?;
    answer(call, tx, id)
}

/// Closes an expired request, whoever the caller is.
pub fn expire(
    context: &mut Context,
    tx: &mut Tx<'_>,
    was: &StoredRow,
    replacement: IdentityReplacement,
) -> Result<(), Problem> {
    context.by_itself(|context| close(context, tx, was, replacement))
}

fn close(
    context: &mut Context,
    tx: &mut Tx<'_>,
    was: &StoredRow,
    mut replacement: IdentityReplacement,
) -> Result<(), Problem> {
    // the view shows the state as expired already, but the row still has the one before, which the audit entry needs
    let open =
        if replacement.approval_satisfied_on.is_some() { Status::Approved } else { Status::PendingApproval };
    let mut values = was.values.clone();
    IdentityReplacement::STATUS.set(&mut values, open)?;
    let was = was.with(values);
    let user = replacement.platform_user_id.0;
    // in the configuration's scope, whoever the caller is: a request expires by time, not by a decision
    let person = context.on_configuration(|context| PlatformUser::find(context, tx, user))?;
    person.release(context, tx, &replacement)?;
    replacement.status = Status::Expired;
    replacement.open_user_id = None;
    advance(context, tx, &IDENTITY_REPLACEMENT, &was, replacement.into_values(), event_name!("expired"))
}

pub fn approve(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (was, mut replacement) = match start(call, tx, &[Status::PendingApproval])? {
        Start::Ready(loaded) => *loaded,
        Start::Done(answer) => return Ok(answer),
    };
    let Some(actor) = call.context.actor else {
        return Err(Problem::conflict("An approval needs an authenticated approver."));
    };
    if replacement.requested_by_actor_id == Some(actor) {
        let detail = "The requester cannot approve the replacement: another approver is needed.";
        return Err(Problem::conflict(detail));
    }
    let mut others = approvals(tx, was.rid)?;
    others.extend(replacement.requested_by_actor_id);
    check_independence(&call.context, tx, &others, replacement.requested_on)?;
    let added = tx.execute(
        &StateTable::IdentityReplacementApproval.insert(
            "(replacement_rid, actor_id, approved_on) VALUES (?1, ?2, ?3) \
         ON CONFLICT DO NOTHING",
        ),
        &[Value::Int(was.rid), Value::Id(actor), Value::Int(call.context.now.0)],
    )?;
    if added == 0 {
        return Err(Problem::conflict(
            "You have already approved this replacement: another approver is needed.",
        ));
    }
    let approved = approvals(tx, was.rid)?;
    if i64::try_from(approved.len()).unwrap_or(0) >= replacement.required_approvals.0 {
        replacement.status = Status::Approved;
        replacement.approval_satisfied_on = Some(call.context.now);
    }
    replacement.approved_by_actor_ids = Ids(approved);
    commit_transition(call, tx, &was, replacement, event_name!("approved"))
}

fn approvals(tx: &mut Tx<'_>, rid: i64) -> Result<Vec<Uuid>, Problem> {
    let mut actors = Vec::new();
    let text = "SELECT actor_id FROM identity_replacement_approval WHERE replacement_rid = ?1 \
                ORDER BY approved_on, actor_id";
    tx.query(text, &[Value::Int(rid)], |row| {
        actors.push(row.id(0)?);
        Ok(())
    })?;
    Ok(actors)
}

pub fn prove(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: Proof = read_form(call)?;
    let (was, mut replacement) = match start(call, tx, &[Status::PendingApproval, Status::Approved])? {
        Start::Ready(loaded) => *loaded,
        Start::Done(answer) => return Ok(answer),
    };
    if replacement.requested_by_actor_id == call.context.actor {
        let detail =
            "The requester cannot vouch for the identities of the replacement: another administrator must.";
        return Err(Problem::conflict(detail));
    }
    let proven = match form.identity {
        WhichIdentity::Current => &mut replacement.current_identity_proven_on,
        WhichIdentity::Replacement => &mut replacement.replacement_identity_proven_on,
    };
    if proven.is_some() {
        return answer(call, tx, replacement.id.0);
    }
    *proven = Some(call.context.now);
    commit_transition(call, tx, &was, replacement, event_name!("proven"))
}

pub fn execute(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let from = [Status::Approved, Status::Executed, Status::Completed, Status::RevocationFailed];
    let (was, mut replacement) = match start(call, tx, &from)? {
        Start::Ready(loaded) => *loaded,
        Start::Done(answer) => return Ok(answer),
    };
    if replacement.executed_on.is_some() {
        return answer(call, tx, replacement.id.0);
    }
    check_proofs(&call.context, &replacement)?;
    let person = PlatformUser::find(&call.context, tx, replacement.platform_user_id.0)?;
    if person.is_hidden {
        return Err(Problem::conflict("The platform user waits to be deleted. Restore the user first."));
    }
    let instance = replacement.replacement_idp_instance_id;
    if replacement.replacement_is_user_store {
        let user = Uuid::try_parse(replacement.replacement_subject.as_str()).unwrap_or_default();
        if !is_present(tx, instance, user)? {
            return Err(Problem::conflict(
                "The user who is the replacement identity is gone from the store.",
            ));
        }
    }
    check_rank(tx, &replacement, was.rid)?;
    person.exchange(&mut call.context, tx, &replacement)?;
    // from now on the platform user follows the instance of its new identity
    let text = "SELECT subscription_id FROM idp_instance WHERE id = ?1";
    let subscription = tx.one(text, &[Value::Id(instance)], |row| row.id(0))?;
    let subscription =
        subscription.ok_or_else(|| Problem::conflict("The replacement's instance is gone."))?;
    let mut values = person.row.values.clone();
    ApplicationUser::IDP_INSTANCE_ID.set(&mut values, instance)?;
    ApplicationUser::SUBSCRIPTION_ID.set(&mut values, subscription)?;
    ApplicationUser::CONCURRENCY_TOKEN.field().set(&mut values, call.context.new_token());
    update(&call.context, tx, &APPLICATION_USER, &person.row, &values)?;
    revocation::begin(tx, was.rid, call.context.now)?;
    replacement.status = Status::Executed;
    replacement.executed_on = Some(call.context.now);
    replacement.open_user_id = None;
    commit_transition(call, tx, &was, replacement, event_name!("executed"))
}

/// Refuses a replacement that was requested or approved by an actor who holds less than the person carries now: it may have
/// been requested before the person got a role. Also refuses one with an identity at an external identity provider that such an actor
/// set up.
fn check_rank(tx: &mut Tx<'_>, replacement: &IdentityReplacement, rid: i64) -> Result<(), Problem> {
    let person = replacement.platform_user_id.0;
    let carried = roles_of_people(tx, &[person])?;
    let actors = approvals(tx, rid)?.into_iter().map(Some);
    for actor in actors.chain([replacement.requested_by_actor_id]) {
        if let Some(above) = first_above(tx, &carried, actor)? {
            let role = above.role.name();
            let detail = format!(
                "The person carries the role {role}, which the requester or an approver of the replacement does not hold. \
                 Cancel the replacement and request it again."
            );
            let problem = Problem::new(ProblemKind::Forbidden, detail);
            return Err(problem.with_member("role", role).with_member("id", person.to_string()));
        }
    }
    let carried: Vec<&CarriedRole> = carried.iter().collect();
    let instance = BTreeSet::from([replacement.replacement_idp_instance_id]);
    match GrantReview::default().required_at(tx, &instance, Some(person), &carried)? {
        Some(unconfirmed) => Err(Problem::conflict(unconfirmed.detail())),
        None => Ok(()),
    }
}

/// Refuses a replacement without a proof that the settings require.
fn check_proofs(context: &Context, replacement: &IdentityReplacement) -> Result<(), Problem> {
    let proofs = context.app.proofs;
    let mut missing = Vec::new();
    if proofs.of_current() && replacement.current_identity_proven_on.is_none() {
        missing.push("current");
    }
    if proofs.of_replacement() && replacement.replacement_identity_proven_on.is_none() {
        missing.push("replacement");
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Problem::conflict(format!("A proof is missing: of the {} identity.", missing.join(" and the "))))
}

pub fn cancel(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (was, mut replacement) = match start(call, tx, &[Status::PendingApproval, Status::Approved])? {
        Start::Ready(loaded) => *loaded,
        Start::Done(answer) => return Ok(answer),
    };
    let person = PlatformUser::find(&call.context, tx, replacement.platform_user_id.0)?;
    person.release(&mut call.context, tx, &replacement)?;
    replacement.status = Status::Cancelled;
    replacement.open_user_id = None;
    commit_transition(call, tx, &was, replacement, event_name!("cancelled"))
}
