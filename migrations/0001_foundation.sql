-- Rises with every change of a right, a key or a setting. An operation runs only while the epoch
-- is the one its caller's rights were loaded at.
CREATE TABLE security_epoch (value {int} NOT NULL);
INSERT INTO security_epoch (value) VALUES (1);

-- Keys of this installation. The private part is encrypted under the master key, which is not here.
CREATE TABLE signing_key (
    rid {row},
    purpose {text} NOT NULL,
    key_id {text} NOT NULL,
    algorithm {text} NOT NULL,
    public_key {bytes} NOT NULL,
    private_key {bytes} NOT NULL,
    created_on {time} NOT NULL
);
CREATE UNIQUE INDEX signing_key__key_id ON signing_key (key_id);

-- store: 0 is the configuration. Contents are canonical JSON; a digest covers salt and content.
CREATE TABLE audit_entry (
    rid {row},
    store {int} NOT NULL,
    timestamp {time} NOT NULL,
    actor {text},
    area {text} NOT NULL,
    primary_key {text} NOT NULL,
    category {text} NOT NULL,
    action {text} NOT NULL,
    data_source {text} NOT NULL,
    original_content {text},
    current_content {text},
    original_salt {bytes},
    current_salt {bytes},
    original_digest {bytes},
    current_digest {bytes},
    signature {bytes} NOT NULL,
    signature_public_key_info {bytes} NOT NULL
);
CREATE INDEX audit_entry__store__rid ON audit_entry (store, rid);

-- Events on their way out: CloudEvents 1.0 envelopes. The id is the audit entry's, a time.
CREATE TABLE outbox_event (
    id {row},
    store {int} NOT NULL,
    envelope {text} NOT NULL
);

-- Ids of what was deleted for good: an id is never used again.
CREATE TABLE retired_id (
    store {int} NOT NULL,
    resource {text} NOT NULL,
    id {id} NOT NULL,
    PRIMARY KEY (store, resource, id)
) {clustered};

-- The first answer to an Idempotency-Key, encrypted. No answer yet: it is being worked on.
CREATE TABLE idempotent_answer (
    caller {id} NOT NULL,
    key_digest {bytes} NOT NULL,
    request_digest {bytes} NOT NULL,
    attempt {id} NOT NULL,
    started_on {time} NOT NULL,
    answer {bytes},
    PRIMARY KEY (caller, key_digest)
) {clustered};
CREATE INDEX idempotent_answer__started_on ON idempotent_answer (started_on);
