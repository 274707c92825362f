-- What is known of makes of authenticators: one row, there from the start. The snapshot itself is
-- apart: each process reads it once, the status is for whoever asks.
CREATE TABLE passkey_trust (
    rid {row},
    source {text} NOT NULL,
    snapshot_number {int},
    snapshot_version {text},
    refreshed_on {time},
    next_update_on {time},
    entry_count {int} NOT NULL,
    skipped_entry_count {int} NOT NULL,
    skipped_certificate_count {int} NOT NULL,
    skipped_because {text},
    last_refresh_error {text}
);
CREATE UNIQUE INDEX passkey_trust__source ON passkey_trust (source);
INSERT INTO passkey_trust (source, entry_count, skipped_entry_count, skipped_certificate_count) VALUES ('mds', 0, 0, 0);

CREATE TABLE passkey_trust_snapshot (
    source {text} NOT NULL PRIMARY KEY,
    snapshot_number {int} NOT NULL,
    content {bytes} NOT NULL
);

-- When the next refresh is due. Whoever moves it on has taken the refresh upon itself.
CREATE TABLE passkey_trust_refresh (
    source {text} NOT NULL PRIMARY KEY,
    due_on {time} NOT NULL,
    failures {int} NOT NULL
) {clustered};
INSERT INTO passkey_trust_refresh (source, due_on, failures) VALUES ('mds', 0, 0);
