-- A user's picture. Its bytes are read where they are asked for.
CREATE TABLE user_image (
    rid {row},
    store {int} NOT NULL,
    user_rid {int} NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    id {id} NOT NULL,
    content_type {text} NOT NULL,
    size_bytes {int} NOT NULL,
    sha256 {bytes} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX user_image__user_rid ON user_image (user_rid);
CREATE TABLE user_image_content (
    user_rid {int} NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    content {bytes} NOT NULL
) {clustered};

-- What a passkey's authenticator proved: kept holds its public key and sign count.
CREATE TABLE passkey_credential (
    rid {row},
    store {int} NOT NULL,
    user_rid {int} NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    id {id} NOT NULL,
    name {text} NOT NULL,
    credential_id {bytes} NOT NULL,
    aaguid {bytes} NOT NULL,
    created_on {time} NOT NULL,
    last_used_on {time},
    is_backup_eligible {bool} NOT NULL,
    is_backed_up {bool} NOT NULL,
    kept {bytes} NOT NULL
);
CREATE UNIQUE INDEX passkey_credential__store__id ON passkey_credential (store, id);
CREATE UNIQUE INDEX passkey_credential__store__credential_id ON passkey_credential (store, credential_id);
CREATE INDEX passkey_credential__user_rid ON passkey_credential (user_rid);

-- Ceremonies under way, each to be finished once.
CREATE TABLE passkey_ceremony (
    id {id} NOT NULL PRIMARY KEY,
    store {int} NOT NULL,
    user_rid {int} REFERENCES user_account (rid) ON DELETE CASCADE,
    is_registration {bool} NOT NULL,
    state {bytes} NOT NULL,
    expires_on {time} NOT NULL
) {clustered};
CREATE INDEX passkey_ceremony__expires_on ON passkey_ceremony (expires_on);
CREATE INDEX passkey_ceremony__user_rid ON passkey_ceremony (user_rid);

-- status is what was done: Active, Used or Revoked. What time does to it is in what is read.
CREATE TABLE temporary_access_pass (
    rid {row},
    store {int} NOT NULL,
    id {id} NOT NULL,
    user_id {id} NOT NULL,
    created_on {time} NOT NULL,
    valid_from {time} NOT NULL,
    expires_on {time} NOT NULL,
    is_one_time_use {bool} NOT NULL,
    status {text} NOT NULL,
    used_on {time},
    created_by_actor_id {id},
    digest {bytes} NOT NULL,
    FOREIGN KEY (store, user_id) REFERENCES user_account (store, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX temporary_access_pass__store__id ON temporary_access_pass (store, id);
CREATE INDEX temporary_access_pass__store__user_id ON temporary_access_pass (store, user_id);

CREATE TABLE recovery_transaction (
    rid {row},
    store {int} NOT NULL,
    id {id} NOT NULL,
    user_id {id} NOT NULL,
    status {text} NOT NULL,
    method {text} NOT NULL,
    reason {text} NOT NULL,
    requested_on {time} NOT NULL,
    expires_on {time} NOT NULL,
    completed_on {time},
    requested_by_actor_id {id},
    approved_by_actor_id {id},
    -- the user while the transaction is open: at most one is
    open_user_id {id},
    FOREIGN KEY (store, user_id) REFERENCES user_account (store, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX recovery_transaction__store__id ON recovery_transaction (store, id);
CREATE UNIQUE INDEX recovery_transaction__store__open_user_id ON recovery_transaction (store, open_user_id);
CREATE INDEX recovery_transaction__store__user_id ON recovery_transaction (store, user_id);

CREATE TABLE passkey_security_event (
    rid {row},
    store {int} NOT NULL,
    id {id} NOT NULL,
    user_id {id} NOT NULL,
    event_type {text} NOT NULL,
    occurred_on {time} NOT NULL,
    actor_id {id},
    credential_id {id},
    details {text},
    FOREIGN KEY (store, user_id) REFERENCES user_account (store, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX passkey_security_event__store__id ON passkey_security_event (store, id);
CREATE INDEX passkey_security_event__store__user_id__id ON passkey_security_event (store, user_id, id);

CREATE TABLE security_contact (
    rid {row},
    store {int} NOT NULL,
    user_rid {int} NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    id {id} NOT NULL,
    kind {text} NOT NULL,
    value {text} NOT NULL,
    value_key {text} NOT NULL,
    is_verified {bool} NOT NULL,
    verified_on {time},
    created_on {time} NOT NULL
);
CREATE UNIQUE INDEX security_contact__store__id ON security_contact (store, id);
CREATE UNIQUE INDEX security_contact__user_rid__value_key ON security_contact (user_rid, value_key);
CREATE TABLE security_contact_code (
    contact_rid {int} NOT NULL PRIMARY KEY REFERENCES security_contact (rid) ON DELETE CASCADE,
    digest {bytes} NOT NULL,
    expires_on {time} NOT NULL,
    attempts {int} NOT NULL
) {clustered};
