-- People sign in. Sessions, codes and grants are state: no audit entries are about them. Secrets are kept as keyed
-- digests, and what is personal is encrypted and bound to its row.

-- A sign-in at one browser. The browser shows a random value, of which `browser` is the digest; it changes with
-- every proof, and the one before still reads for a moment.
CREATE TABLE sign_in_session (
    id {id} NOT NULL PRIMARY KEY,
    browser {bytes} NOT NULL,
    former_browser {bytes},
    former_until {time},
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    proofs {text} NOT NULL,
    -- whether it outlives the browser's own session
    is_kept {bool} NOT NULL,
    started_on {time} NOT NULL,
    used_on {time} NOT NULL,
    expires_on {time} NOT NULL,
    ended_on {time}
);
CREATE INDEX sign_in_session__browser ON sign_in_session (browser);
CREATE INDEX sign_in_session__former_browser ON sign_in_session (former_browser);
CREATE INDEX sign_in_session__person_id ON sign_in_session (person_id);
CREATE INDEX sign_in_session__tenant_id ON sign_in_session (tenant_id);
CREATE INDEX sign_in_session__expires_on ON sign_in_session (expires_on);

-- What an app has of a person: made when a code becomes tokens, named by the person's tokens.
CREATE TABLE sign_in_grant (
    id {id} NOT NULL PRIMARY KEY,
    session_id {id},
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    scope {text} NOT NULL,
    started_on {time} NOT NULL,
    expires_on {time} NOT NULL,
    ended_on {time}
);
CREATE INDEX sign_in_grant__session_id ON sign_in_grant (session_id);
CREATE INDEX sign_in_grant__person_id ON sign_in_grant (person_id);
CREATE INDEX sign_in_grant__client_app_id ON sign_in_grant (client_app_id);
CREATE INDEX sign_in_grant__tenant_id ON sign_in_grant (tenant_id);
CREATE INDEX sign_in_grant__expires_on ON sign_in_grant (expires_on);

-- A code that was not shown yet, or was: shown again, it ends the grant that it made.
CREATE TABLE authorization_code (
    digest {bytes} NOT NULL PRIMARY KEY,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    grant_id {id} NOT NULL,
    sealed {bytes} NOT NULL,
    -- how often it was shown wrongly
    misses {int} NOT NULL,
    used_on {time},
    expires_on {time} NOT NULL
);
CREATE INDEX authorization_code__client_app_id ON authorization_code (client_app_id);
CREATE INDEX authorization_code__expires_on ON authorization_code (expires_on);

-- What came of attempts to sign in. Address and browser are encrypted under the person's key.
CREATE TABLE sign_in_record (
    rid {row},
    id {id} NOT NULL,
    occurred_on {time} NOT NULL,
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    client_app_id {id},
    idp_instance_id {id},
    person_id {id} NOT NULL,
    outcome {text} NOT NULL,
    reason {text},
    methods {text} NOT NULL,
    acr {text},
    session_id {id},
    address {bytes},
    user_agent {bytes},
    -- by the tenant's option SignInRecordRetention as it was
    expires_on {time} NOT NULL
);
CREATE UNIQUE INDEX sign_in_record__id ON sign_in_record (id);
CREATE INDEX sign_in_record__tenant_id__rid ON sign_in_record (tenant_id, rid);
CREATE INDEX sign_in_record__person_id ON sign_in_record (person_id);
CREATE INDEX sign_in_record__expires_on ON sign_in_record (expires_on);
