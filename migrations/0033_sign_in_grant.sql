-- What a sign-in leaves, as administrators see it: sessions, grants and consents have row numbers, as resources
-- have. No release has sign-ins yet, so those of 0032 are made anew, and nobody stays signed in.
DROP TABLE authorization_code;
DROP TABLE sign_in_grant;
DROP TABLE sign_in_session;
DROP TABLE sign_in_record;

-- A sign-in at one browser. The browser shows a random value, of which `browser` is the digest; it changes with
-- every proof, and the one before still reads for a moment.
CREATE TABLE sign_in_session (
    rid {row},
    id {id} NOT NULL,
    browser {bytes} NOT NULL,
    former_browser {bytes},
    former_until {time},
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    -- of the last first factor
    idp_instance_id {id} NOT NULL,
    proofs {text} NOT NULL,
    -- whether it outlives the browser's own session
    is_kept {bool} NOT NULL,
    started_on {time} NOT NULL,
    used_on {time} NOT NULL,
    expires_on {time} NOT NULL,
    ended_on {time}
);
CREATE UNIQUE INDEX sign_in_session__id ON sign_in_session (id);
CREATE INDEX sign_in_session__browser ON sign_in_session (browser);
CREATE INDEX sign_in_session__former_browser ON sign_in_session (former_browser);
CREATE INDEX sign_in_session__person_id ON sign_in_session (person_id, id);
CREATE INDEX sign_in_session__tenant_id ON sign_in_session (tenant_id, id);
CREATE INDEX sign_in_session__expires_on ON sign_in_session (expires_on);

-- What a client app has of a person: made when a code becomes tokens, named by the person's tokens.
CREATE TABLE sign_in_grant (
    rid {row},
    id {id} NOT NULL,
    -- the session that it ends with, unless it is for when the person is away
    session_id {id},
    -- the tenant whose issuer was asked; none is the installation
    issuing_tenant_id {id},
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    -- of the last first factor
    idp_instance_id {id} NOT NULL,
    scope {text} NOT NULL,
    -- whether it has `offline_access`, and so a refresh token
    is_offline {bool} NOT NULL,
    -- of the refresh token: the one of before is good for a moment more
    generation {int} NOT NULL,
    rotated_on {time},
    -- of the keys of its refresh tokens
    salt {bytes} NOT NULL,
    sealed {bytes} NOT NULL,
    started_on {time} NOT NULL,
    used_on {time} NOT NULL,
    -- when its last token ends
    expires_on {time} NOT NULL,
    ended_on {time}
);
CREATE UNIQUE INDEX sign_in_grant__id ON sign_in_grant (id);
CREATE INDEX sign_in_grant__session_id ON sign_in_grant (session_id);
CREATE INDEX sign_in_grant__person_id ON sign_in_grant (person_id, id);
CREATE INDEX sign_in_grant__client_app_id ON sign_in_grant (client_app_id, id);
CREATE INDEX sign_in_grant__tenant_id ON sign_in_grant (tenant_id, id);
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
    address {text},
    user_agent {text},
    -- by the tenant's option SignInRecordRetention as it was
    expires_on {time} NOT NULL
);
CREATE UNIQUE INDEX sign_in_record__id ON sign_in_record (id);
CREATE INDEX sign_in_record__tenant_id ON sign_in_record (tenant_id, id);
CREATE INDEX sign_in_record__person_id ON sign_in_record (person_id, id);
CREATE INDEX sign_in_record__expires_on ON sign_in_record (expires_on);

-- What a person, or an administrator for the person, lets a client app have.
CREATE TABLE sign_in_consent (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    scope {text} NOT NULL,
    resources {text} NOT NULL,
    source {text} NOT NULL,
    given_on {time},
    concurrency_token {text} NOT NULL,
    last_entry {int} NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sign_in_consent__id ON sign_in_consent (id);
CREATE UNIQUE INDEX sign_in_consent__client_app_id__person_id ON sign_in_consent (client_app_id, person_id);
CREATE INDEX sign_in_consent__person_id ON sign_in_consent (person_id, id);

-- Client apps to be told, by their back channel, that a session ended.
CREATE TABLE logout_delivery (
    id {id} NOT NULL PRIMARY KEY,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    issuing_tenant_id {id} REFERENCES tenant (id) ON DELETE CASCADE,
    person_id {id} NOT NULL,
    session_id {id},
    queued_on {time} NOT NULL,
    due_on {time} NOT NULL,
    lease {id},
    leased_until {time} NOT NULL,
    tries {int} NOT NULL,
    dead_on {time}
);
CREATE INDEX logout_delivery__client_app_id ON logout_delivery (client_app_id);
CREATE INDEX logout_delivery__issuing_tenant_id ON logout_delivery (issuing_tenant_id);
CREATE INDEX logout_delivery__due_on ON logout_delivery (due_on);
