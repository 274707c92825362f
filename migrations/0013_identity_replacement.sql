-- Requests to put one identity of a platform user in the place of another. The replacing identity
-- is told here, too: its own row goes when the request comes to nothing.
CREATE TABLE identity_replacement (
    rid {row},
    id {id} NOT NULL,
    platform_user_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    current_identity_id {id} NOT NULL,
    replacement_identity_id {id} NOT NULL,
    replacement_idp_instance_id {id} NOT NULL,
    replacement_issuer {text} NOT NULL,
    replacement_subject {text} NOT NULL,
    replacement_is_user_store {bool} NOT NULL,
    -- as it was last written: that a request expired is seen by its time
    status {text} NOT NULL,
    requested_by_actor_id {id},
    reason {text} NOT NULL,
    required_approvals {int} NOT NULL,
    -- the actors of identity_replacement_approval, as a JSON array
    approved_by_actor_ids {text} NOT NULL,
    requested_on {time} NOT NULL,
    expires_on {time} NOT NULL,
    current_identity_proven_on {time},
    replacement_identity_proven_on {time},
    approval_satisfied_on {time},
    executed_on {time},
    revocation_completed_on {time},
    revocation_attempts {int} NOT NULL,
    policy_fingerprint {text} NOT NULL,
    -- the platform user while the request is open: at most one is
    open_user_id {id},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX identity_replacement__id ON identity_replacement (id);
CREATE UNIQUE INDEX identity_replacement__open_user_id ON identity_replacement (open_user_id);
CREATE INDEX identity_replacement__platform_user_id ON identity_replacement (platform_user_id, rid);
CREATE INDEX identity_replacement__current_identity_id ON identity_replacement (current_identity_id);
CREATE INDEX identity_replacement__replacement_identity_id ON identity_replacement (replacement_identity_id);
CREATE INDEX identity_replacement__expires_on ON identity_replacement (expires_on) WHERE open_user_id IS NOT NULL;

-- Who approved: nobody twice.
CREATE TABLE identity_replacement_approval (
    replacement_rid {int} NOT NULL REFERENCES identity_replacement (rid) ON DELETE CASCADE,
    actor_id {id} NOT NULL,
    approved_on {time} NOT NULL,
    PRIMARY KEY (replacement_rid, actor_id)
) {clustered};

-- Identities that were replaced and whose sessions and tokens are to be ended yet.
CREATE TABLE identity_revocation (
    replacement_rid {int} NOT NULL PRIMARY KEY REFERENCES identity_replacement (rid) ON DELETE CASCADE,
    due_on {time} NOT NULL,
    attempts {int} NOT NULL,
    -- who works on it, and until when nobody else does
    lease {id},
    leased_until {time} NOT NULL,
    last_error {text}
);
CREATE INDEX identity_revocation__due_on ON identity_revocation (due_on);
