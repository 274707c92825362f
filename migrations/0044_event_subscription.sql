-- Where events are sent: those of a user store, or, without one, those of the configuration and of sign-ins.
CREATE TABLE event_subscription (
    rid {row},
    store {int},
    id {id} NOT NULL,
    name {text} NOT NULL,
    url {text} NOT NULL,
    types {text} NOT NULL,
    is_active {bool} NOT NULL,
    ordering {text} NOT NULL,
    contact {text},
    headers {text} NOT NULL,
    subscription_id {id} REFERENCES subscription (id),
    apply_to_tenant_id {id} REFERENCES tenant (id),
    sealed_headers {text},
    signing_secret {text},
    former_secret {text},
    former_until {time},
    tested_url {text},
    begins_after {text},
    concurrency_token {text} NOT NULL,
    last_entry {int} NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX event_subscription__id ON event_subscription (id);
CREATE INDEX event_subscription__store ON event_subscription (store);
CREATE INDEX event_subscription__subscription_id ON event_subscription (subscription_id);
CREATE INDEX event_subscription__apply_to_tenant_id ON event_subscription (apply_to_tenant_id);

-- How far a subscription has come in a trail: everything up to here was delivered, or is in event_delivery. Events up to the
-- number in since happened before it began.
CREATE TABLE event_reader (
    subscription_id {id} NOT NULL REFERENCES event_subscription (id) ON DELETE CASCADE,
    trail {int} NOT NULL,
    position {int} NOT NULL,
    event {int} NOT NULL,
    since {int} NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription_id, trail)
) {clustered};

-- How deliveries fare: failures in a row, since when, until when the receiver is left alone.
CREATE TABLE event_subscriber (
    subscription_id {id} NOT NULL PRIMARY KEY REFERENCES event_subscription (id) ON DELETE CASCADE,
    failures {int} NOT NULL DEFAULT 0,
    failing_since {time},
    paused_until {time} NOT NULL DEFAULT 0,
    delivered {int} NOT NULL DEFAULT 0,
    last_success_on {time},
    last_failure_on {time},
    last_failure {text},
    disabled_on {time}
) {clustered};

-- What could not be delivered, and what waits behind it; what was given up (dead_on).
CREATE TABLE event_delivery (
    rid {counted},
    subscription_id {id} NOT NULL REFERENCES event_subscription (id) ON DELETE CASCADE,
    trail {int} NOT NULL,
    position {int} NOT NULL,
    event {text} NOT NULL,
    kind {text} NOT NULL,
    subject {text} NOT NULL,
    body {text} NOT NULL,
    due_on {time} NOT NULL,
    tries {int} NOT NULL,
    dead_on {time}
);
CREATE INDEX event_delivery__subscription_id__due_on ON event_delivery (subscription_id, due_on);
CREATE INDEX event_delivery__subscription_id__subject__rid ON event_delivery (subscription_id, subject, rid);
CREATE INDEX event_delivery__dead_on ON event_delivery (dead_on);

-- What came of tries; of deliveries at the first try one row for many.
CREATE TABLE event_attempt (
    rid {counted},
    store {int},
    subscription_id {id} NOT NULL REFERENCES event_subscription (id) ON DELETE CASCADE,
    event {text} NOT NULL,
    kind {text} NOT NULL,
    count {int} NOT NULL,
    number {int} NOT NULL,
    tried_on {time} NOT NULL,
    status {int},
    reason {text},
    duration {int} NOT NULL
);
CREATE INDEX event_attempt__subscription_id__rid ON event_attempt (subscription_id, rid);
CREATE INDEX event_attempt__tried_on ON event_attempt (tried_on);

INSERT INTO job_lease (name, until) VALUES ('delivering', 0);
