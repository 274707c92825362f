-- Ids of assertions and proofs that were used: a digest each, kept until none is good any more.
CREATE TABLE used_proof (
    digest {bytes} NOT NULL,
    expires_on {time} NOT NULL,
    PRIMARY KEY (digest)
) {clustered};
CREATE INDEX used_proof__expires_on ON used_proof (expires_on);

-- Access tokens that are references: a keyed digest of the token, and what it says.
CREATE TABLE reference_token (
    digest {bytes} NOT NULL,
    claims {text} NOT NULL,
    expires_on {time} NOT NULL,
    PRIMARY KEY (digest)
) {clustered};
CREATE INDEX reference_token__expires_on ON reference_token (expires_on);

-- Access tokens that were revoked before their time.
CREATE TABLE revoked_token (
    jti {text} NOT NULL,
    expires_on {time} NOT NULL,
    PRIMARY KEY (jti)
) {clustered};
CREATE INDEX revoked_token__expires_on ON revoked_token (expires_on);
