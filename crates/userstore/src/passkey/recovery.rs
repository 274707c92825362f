//! Recovery transactions: restore the access of a user who lost every authenticator, requested by one administrator and approved
//! by another.

use chancery_application::check_independence;
use chancery_record::{
    FIXED, HIDDEN, KEY, Name, OPEN, Record as _, SHOWN, ShortText, Timestamp, Uuid, Value, choice_types,
    id_types, record,
};
use chancery_resource::{
    Action as A, Answer, AuditAction, Body, BodyForm, Call, Context, Custom, Method as M, Op,
    Permit::UserStore, Problem, ProblemKind, Reach, Reply, Shape, Tx, check_if_match, event_name, insert,
    list_where, load, load_by, new_row, read_form, select_where, update_unversioned, write_stored,
};

use super::{
    access_pass::user_in_body,
    event::{self, EventType},
};
use crate::{
    UserId,
    user::{USER, is_still_valid},
};

/// The lifetime of a transaction, in milliseconds.
const LIFETIME: i64 = 24 * 3600 * 1000;

id_types! {
    /// The id of a recovery transaction.
    RecoveryId
}

choice_types! {
    /// The status of a recovery.
    RecoveryStatus {
        /// It was requested.
        Requested,
        /// It waits for a proof.
        ProofPending,
        /// It waits for the end of the cooling-off period.
        CoolingOff,
        /// Another administrator approved it.
        Approved,
        /// It was completed.
        Completed,
        /// It was cancelled.
        Cancelled,
        /// It expired.
        Expired,
        /// It was refused.
        Rejected,
    }
}

record! {
    /// The recovery of a user's access: requested by one administrator, approved by another, completed or
    /// cancelled within a day.
    #[de(
        "Wiederherstellung",
        "Wiederherstellungen",
        "Die Wiederherstellung eines Zugangs: von einem beantragt, von einem anderen genehmigt, binnen eines Tages abgeschlossen oder abgebrochen."
    )]
    pub struct RecoveryTransaction {
        /// The id of the recovery transaction.
        #[de(_, "Die Kennung der Wiederherstellung.")]
        id: RecoveryId = KEY,
        /// The user.
        user_id: UserId = FIXED,
        /// The status.
        status: RecoveryStatus = SHOWN,
        /// The method by which the user proves their identity.
        method: Name = SHOWN.like("IdentityDocument"),
        /// Why access was lost.
        reason: ShortText = SHOWN,
        /// When it was requested.
        requested_on: Timestamp = SHOWN,
        /// Time until which the recovery can be completed.
        expires_on: Timestamp = SHOWN,
        /// When it was completed.
        #[de("Abgeschlossen am")]
        completed_on: Option<Timestamp> = SHOWN,
        /// The actor who requested it.
        requested_by_actor_id: Option<Uuid> = SHOWN,
        /// The actor that approved the recovery.
        #[de("Genehmigt von")]
        approved_by_actor_id: Option<Uuid> = SHOWN,
        /// The user while the transaction is open.
        open_user_id: Option<Uuid> = HIDDEN,
    }
}

/// The shape of recovery transactions.
pub static RECOVERY: Shape =
    Shape::of::<RecoveryTransaction>("RecoveryTransaction", "recovery_transaction", Reach::Store)
        .read_from(
            "(SELECT rid, store, id, user_id, \
             CASE WHEN status IN ('Requested', 'Approved') AND expires_on <= ?1 THEN 'Expired' ELSE status END AS status, \
             method, reason, requested_on, expires_on, completed_on, requested_by_actor_id, approved_by_actor_id, \
             open_user_id, last_entry FROM recovery_transaction)",
        )
        .of_person(&USER, RecoveryTransaction::USER_ID);

record! {
    /// The user whose access is to be recovered, the method and the reason.
    pub struct NewRecovery {
        /// The user.
        user_id: UserId = OPEN,
        /// The method by which the user proves their identity, e.g. `IdentityDocument` or `SecurityContact`.
        #[de(_, "Die Methode, mit der der Benutzer seine Identität nachweist, z. B. `IdentityDocument` oder `SecurityContact`.")]
        method: Name = OPEN.like("IdentityDocument"),
        /// Why access was lost.
        reason: ShortText = OPEN,
    }
}

static NEW: BodyForm = BodyForm::of::<NewRecovery>("NewRecoveryTransaction");

const ALL: &str = "/administration/passkey-security/recovery-transactions";

const fn op(name: &'static str, method: M, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &RECOVERY, A::Custom(custom), summary)
}

/// The operations on recovery transactions.
pub static OPERATIONS: &[Op] = &[
    op(
        "ListRecoveryTransactions",
        M::Get,
        ALL,
        Custom::listing(|call, tx| list_where(call, tx, &|_| ())).replying(Reply::Items),
        "Lists the recovery transactions.",
    ),
    op(
        "StartRecovery",
        M::Post,
        ALL,
        Custom::writing(start).taking(Body::Form(&NEW)),
        "Requests a recovery.",
    )
    .answering(201, Reply::One)
    .added(),
    op(
        "ApproveRecovery",
        M::Post,
        "/administration/passkey-security/recovery-transactions/{id}/approvals",
        Custom::writing(approve),
        "Approves a recovery requested by another administrator.",
    )
    .added(),
    op(
        "CompleteRecovery",
        M::Post,
        "/administration/passkey-security/recovery-transactions/{id}/completion",
        Custom::writing(complete),
        "Completes a recovery that was approved.",
    )
    .added(),
    op(
        "CancelRecovery",
        M::Post,
        "/administration/passkey-security/recovery-transactions/{id}/cancellation",
        Custom::writing(cancel),
        "Cancels a recovery that is open.",
    )
    .added(),
];

fn start(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: NewRecovery = read_form(call)?;
    if form.reason.as_str().trim().is_empty() {
        return Err(Problem::wrong_field(NewRecovery::REASON, "must not be blank: say why access was lost"));
    }
    let loaded = user_in_body(&call.context, tx, form.user_id)?;
    let user = loaded.user.id;
    close_expired(&call.context, tx, user)?;
    let transaction = RecoveryTransaction {
        id: RecoveryId(call.context.new_id()),
        user_id: user,
        status: RecoveryStatus::Requested,
        method: form.method,
        reason: form.reason,
        requested_on: call.context.now,
        expires_on: call.context.now.plus(LIFETIME),
        completed_on: None,
        requested_by_actor_id: call.context.actor,
        approved_by_actor_id: None,
        open_user_id: Some(user.0),
    };
    let id = transaction.id.0;
    let values = new_row(&call.context, &RECOVERY, None, transaction.into_values())?;
    insert(&call.context, tx, &RECOVERY, None, &values)?;
    event::record(&call.context, tx, user, EventType::RecoveryStarted, None, None)?;
    answer(call, tx, id)
}

/// Closes a user's expired transaction before the next one; an open one is a conflict. Until then only
/// the view shows that it expired.
fn close_expired(context: &Context, tx: &mut Tx<'_>, user: UserId) -> Result<(), Problem> {
    let sql = select_where(context, &RECOVERY, RecoveryTransaction::OPEN_USER_ID, Value::Id(user.0));
    let was = match load_by(context, tx, &RECOVERY, None, &sql) {
        Err(problem) if problem.status() == 404 => return Ok(()),
        was => was?,
    };
    let mut transaction = RecoveryTransaction::from_values(was.values.clone())?;
    if transaction.status != RecoveryStatus::Expired {
        return Err(Problem::conflict("A recovery of this user is open. Complete or cancel it first."));
    }
    transaction.open_user_id = None;
    update_unversioned(
        context,
        tx,
        &RECOVERY,
        &was,
        &transaction.into_values(),
        AuditAction::Modified(event_name!("expired")),
    )
}

/// Changes the status of a transaction from one of `from` to `to`.
fn advance(
    call: &mut Call,
    tx: &mut Tx<'_>,
    from: &[RecoveryStatus],
    to: RecoveryStatus,
    event_type: Option<EventType>,
    change: impl FnOnce(&Call, &mut Tx<'_>, &mut RecoveryTransaction) -> Result<(), Problem>,
) -> Result<Answer, Problem> {
    let key = RECOVERY.read_key(call.request.parameter(0))?;
    let was = load(&call.context, tx, &RECOVERY, None, key)?;
    check_if_match(call, tx, &RECOVERY, &was)?;
    let mut transaction = RecoveryTransaction::from_values(was.values.clone())?;
    if !from.contains(&transaction.status) {
        let allowed: Vec<&str> = from.iter().map(|status| status.name()).collect();
        let detail =
            format!("The recovery is {}; it must be {}.", transaction.status.name(), allowed.join(" or "));
        return Err(Problem::conflict(detail));
    }
    change(call, tx, &mut transaction)?;
    transaction.status = to;
    if to != RecoveryStatus::Approved {
        transaction.open_user_id = None;
    }
    let (id, user) = (transaction.id.0, transaction.user_id);
    update_unversioned(&call.context, tx, &RECOVERY, &was, &transaction.into_values(), AuditAction::UPDATED)?;
    if let Some(event_type) = event_type {
        event::record(&call.context, tx, user, event_type, None, None)?;
    }
    answer(call, tx, id)
}

fn answer(call: &mut Call, tx: &mut Tx<'_>, id: Uuid) -> Result<Answer, Problem> {
    let stored = load(&call.context, tx, &RECOVERY, None, Value::Id(id))?;
    write_stored(call, tx, &RECOVERY, &stored)?;
    Ok(Answer::resource(call.request.op.status))
}

fn approve(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let change = |call: &Call, tx: &mut Tx<'_>, transaction: &mut RecoveryTransaction| {
        if transaction.requested_by_actor_id == call.context.actor {
            return Err(Problem::conflict(
                "The requester cannot approve the recovery: another approver is needed.",
            ));
        }
        let requester = transaction.requested_by_actor_id;
        check_independence(&call.context, tx, requester.as_slice(), transaction.requested_on)?;
        transaction.approved_by_actor_id = call.context.actor;
        Ok(())
    };
    advance(call, tx, &[RecoveryStatus::Requested], RecoveryStatus::Approved, None, change)
}

/// Refuses a recovery that was requested or approved by an actor who holds less than the user carries now: it may have been
/// requested before the user got a role.
fn check_rank(context: &Context, tx: &mut Tx<'_>, transaction: &RecoveryTransaction) -> Result<(), Problem> {
    for actor in [transaction.requested_by_actor_id, transaction.approved_by_actor_id] {
        if !is_still_valid(context, tx, transaction.user_id, actor)? {
            let detail = "The user carries a role that the requester or the approver of the recovery does not hold. \
                Cancel the recovery and request it again.";
            return Err(Problem::new(ProblemKind::Forbidden, detail));
        }
    }
    Ok(())
}

fn complete(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    advance(
        call,
        tx,
        &[RecoveryStatus::Approved],
        RecoveryStatus::Completed,
        Some(EventType::RecoveryCompleted),
        |call, tx, transaction| {
            check_rank(&call.context, tx, transaction)?;
            transaction.completed_on = Some(call.context.now);
            Ok(())
        },
    )
}

fn cancel(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    advance(
        call,
        tx,
        &[RecoveryStatus::Requested, RecoveryStatus::Approved],
        RecoveryStatus::Cancelled,
        Some(EventType::RecoveryCancelled),
        |_, _, _| Ok(()),
    )
}
