-- The key under which the audit trail keeps what it says of the user, itself encrypted under the
-- master key. It goes with the row, and with it the contents.
ALTER TABLE user_account ADD COLUMN audit_key {bytes};
ALTER TABLE audit_entry ADD COLUMN person {id};

-- Where attempts to sign in stand: how often in a row, not before when, and which attempt is
-- being decided that reached a limit.
ALTER TABLE user_account ADD COLUMN throttle_step {int} NOT NULL DEFAULT 0;
ALTER TABLE user_account ADD COLUMN throttled_until {time};
ALTER TABLE user_account ADD COLUMN closing_attempt {id};
ALTER TABLE user_account ADD COLUMN closing_since {time};

-- Entries that no tree holds yet.
CREATE TABLE audit_pending (
    entry {int} NOT NULL PRIMARY KEY,
    store {int} NOT NULL
) {clustered};
CREATE INDEX audit_pending__store__entry ON audit_pending (store, entry);
INSERT INTO audit_pending (entry, store) SELECT rid, store FROM audit_entry;

-- Passwords, as argon2id's own text. The newest is the one that counts.
CREATE TABLE user_password (
    user_rid {int} NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    hash {text} NOT NULL,
    changed_on {time} NOT NULL
) {clustered};
CREATE TABLE user_password_history (
    user_rid {int} NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    changed_on {time} NOT NULL,
    hash {text} NOT NULL,
    PRIMARY KEY (user_rid, changed_on, hash)
) {clustered};

-- The one token that resets a user's password, as a digest.
CREATE TABLE password_reset (
    user_rid {int} NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    digest {bytes} NOT NULL,
    expires_on {time} NOT NULL
) {clustered};
CREATE INDEX user_account__store__quarantined_on ON user_account (store, quarantined_on) WHERE quarantined_on IS NOT NULL;
