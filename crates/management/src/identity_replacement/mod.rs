//! Identity replacements: one identity of a platform user replaces another. Requested by one administrator, approved by
//! others, executed once; sessions and tokens of the replaced identity are revoked afterwards.

mod identity;
mod record;
mod request;
mod revocation;
mod sign_in;
mod transition;

use chancery_application::{APPLICATION_IDENTITY, APPLICATION_USER, ApplicationIdentity};
use chancery_resource::{
    Action as A, Body, BodyForm, Custom, Method as M, Op, Pairs, Permit, Reach, Relation, Reply, Shape,
    Unique, list_where,
};
use chancery_resource::{Figure, FigureSource, FigureUnit};

pub use record::{IdentityReplacement, IdentityReplacementId, ReplacementStatus};
pub use revocation::{
    REVOCATION_STEPS, ReplacedIdentity, RevocationStep, complete, due, expire_due, fail, is_overdue, lease,
};
pub use sign_in::{prove_replaced, prove_replacing};

use record::{NewIdentityReplacement, Proof};

/// The figures of replaced identities, for operators.
pub static FIGURES: [Figure; 2] = [
    Figure {
        name: "revocations_waiting",
        help: "Replaced identities whose sessions and tokens are to be ended yet",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "identity_revocation"),
    },
    Figure {
        name: "revocations_failed",
        help: "Those of them for which that has failed: it is tried again",
        unit: FigureUnit::Count,
        // counts rows of the queue alone: replacements can be very many
        source: FigureSource::Rows("last_error", "identity_revocation"),
    },
];

/// The replacement identities. The row of one is deleted when its request ends without a
/// replacement; the request still has its fields.
static REPLACEMENT_IDENTITY: Shape = Shape::of::<ApplicationIdentity>(
    "ApplicationIdentity",
    "(SELECT r.rid, r.replacement_identity_id AS id, r.replacement_idp_instance_id AS idp_instance_id, \
     r.replacement_issuer AS issuer, r.replacement_subject AS subject, \
     r.replacement_is_user_store AS is_user_store_identity, \
     COALESCE(i.lifecycle_status, 'Revoked') AS lifecycle_status, i.set_by, i.set_on FROM identity_replacement r \
     LEFT JOIN application_identity i ON i.id = r.replacement_identity_id)",
    Reach::Part,
);

static RELATIONS: [Relation; 2] = [
    Relation::new(
        "currentIdentity",
        "The identity that is replaced.",
        Pairs {
            table: "(SELECT r.rid AS own_rid, i.rid AS other_rid FROM identity_replacement r \
             JOIN application_identity i ON i.id = r.current_identity_id)",
            own: "own_rid",
            other: "other_rid",
        },
        &APPLICATION_IDENTITY,
    )
    .showing_all()
    .single(),
    Relation::new(
        "replacementIdentity",
        "The replacement identity.",
        Pairs { table: "identity_replacement", own: "rid", other: "rid" },
        &REPLACEMENT_IDENTITY,
    )
    .showing_all()
    .single(),
];

/// The shape of identity replacements, in the scope of the platform user.
pub static IDENTITY_REPLACEMENT: Shape = Shape::of::<IdentityReplacement>(
    "IdentityReplacement",
    "identity_replacement",
    Reach::Of(IdentityReplacement::PLATFORM_USER_ID.field(), &APPLICATION_USER),
)
.sensitive()
.read_from(
    "(SELECT r.rid, r.id, r.platform_user_id, r.current_identity_id, r.replacement_identity_id, \
     CASE WHEN r.status IN ('PendingApproval', 'Approved') AND r.expires_on <= ?1 THEN 'Expired' ELSE r.status END \
     AS status, r.requested_by_actor_id, r.reason, r.required_approvals, r.approved_by_actor_ids, r.requested_on, \
     r.expires_on, r.current_identity_proven_on, r.replacement_identity_proven_on, r.approval_satisfied_on, \
     r.executed_on, r.revocation_completed_on, r.revocation_attempts, \
     CASE WHEN v.leased_until <= ?1 THEN v.due_on END AS revocation_due_on, v.last_error AS revocation_error, \
     r.policy_fingerprint, r.replacement_idp_instance_id, r.replacement_issuer, r.replacement_subject, \
     r.replacement_is_user_store, r.open_user_id, r.concurrency_token, r.last_entry FROM identity_replacement r \
     LEFT JOIN identity_revocation v ON v.replacement_rid = r.rid)",
)
.unique(&[Unique::new("identity_replacement__open_user_id", &[IdentityReplacement::OPEN_USER_ID.field()])
    .reported_at(IdentityReplacement::PLATFORM_USER_ID)])
.relations(&RELATIONS)
.of_person(&APPLICATION_USER, IdentityReplacement::PLATFORM_USER_ID);

static NEW: BodyForm = BodyForm::of::<NewIdentityReplacement>("IdentityReplacementRequest");
static PROOF: BodyForm = BodyForm::of::<Proof>("IdentityReplacementProof");

const fn op(
    name: &'static str,
    method: M,
    path: &'static str,
    permit: Permit,
    action: A,
    summary: &'static str,
) -> Op {
    Op::new(name, method, path, permit, &IDENTITY_REPLACEMENT, action, summary)
}

const QUEUE: Custom = Custom::listing(|call, tx| {
    list_where(call, tx, &|sql| {
        sql.add(" AND t.open_user_id IS NOT NULL AND t.status IN ('PendingApproval', 'Approved')");
    })
});

/// The operations on identity replacements. Names are those of the contract.
pub static OPERATIONS: &[Op] = &[
    op(
        "GetIdentityReplacements",
        M::Get,
        "/identity-replacements",
        Permit::SubscriptionAdmin,
        A::List,
        "Lists the identity replacements.",
    ),
    op(
        "Request",
        M::Post,
        "/identity-replacements",
        Permit::SubscriptionAdmin,
        A::Custom(Custom::writing(request::request).taking(Body::Form(&NEW))),
        "Requests an identity replacement.",
    )
    .answering(201, Reply::One),
    op(
        "GetIdentityReplacementQueue",
        M::Get,
        "/identity-replacements/queue",
        Permit::SubscriptionAdmin,
        A::Custom(QUEUE.replying(Reply::Items)),
        "Lists the open identity replacements, the oldest first.",
    ),
    op(
        "GetIdentityReplacement",
        M::Get,
        "/identity-replacements/{id}",
        Permit::SubscriptionAdmin,
        A::Read,
        "Reads an identity replacement.",
    ),
    op(
        "Approve",
        M::Post,
        "/identity-replacements/{id}/approvals",
        Permit::SubscriptionAdmin,
        A::Custom(Custom::writing(transition::approve)),
        "Approves an identity replacement requested by another administrator.",
    ),
    op(
        "ProveReplacementIdentity",
        M::Post,
        "/identity-replacements/{id}/proofs",
        Permit::SystemAdmin,
        A::Custom(Custom::writing(transition::prove).taking(Body::Form(&PROOF))),
        "Records that one of the two identities was proven to belong to the person.",
    )
    .added(),
    op(
        "Execute",
        M::Post,
        "/identity-replacements/{id}/execute",
        Permit::SystemAdmin,
        A::Custom(Custom::writing(transition::execute)),
        "Executes an approved identity replacement. If it was executed before, returns its current state.",
    ),
    op(
        "Cancel",
        M::Post,
        "/identity-replacements/{id}/cancel",
        Permit::SystemAdmin,
        A::Custom(Custom::writing(transition::cancel)),
        "Cancels an open identity replacement.",
    ),
];
