-- Public keys of certificates that sign the audit trail, as JWKs. What they signed stays when the
-- certificate goes, and so do they.
CREATE TABLE audit_key (
    key_id {text} NOT NULL PRIMARY KEY,
    jwk {text} NOT NULL,
    created_on {time} NOT NULL
) {clustered};
