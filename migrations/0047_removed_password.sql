-- Passwords that were taken away from people who have passkeys, kept so that they can be given back.
CREATE TABLE removed_password (
    user_rid {int} NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    hash {text} NOT NULL,
    changed_on {time} NOT NULL,
    expires_on {time} NOT NULL
) {clustered};
CREATE INDEX removed_password__expires_on ON removed_password (expires_on);
