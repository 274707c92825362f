-- What people confirm by that it is them, beside passwords and passkeys.

-- An authenticator that a person enrolled for an MFA instance. `last_step` is that of the last code: each counts once.
CREATE TABLE second_factor (
    rid {row},
    id {id} NOT NULL,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    mfa_instance_id {id} NOT NULL REFERENCES mfa_instance (id) ON DELETE CASCADE,
    sealed {bytes} NOT NULL,
    last_step {int} NOT NULL,
    enrolled_on {time} NOT NULL,
    used_on {time}
);
CREATE UNIQUE INDEX second_factor__id ON second_factor (id);
CREATE UNIQUE INDEX second_factor__person_id__mfa_instance_id ON second_factor (person_id, mfa_instance_id);
CREATE INDEX second_factor__mfa_instance_id ON second_factor (mfa_instance_id);

-- Codes in place of an authenticator's, for who has it not at hand. One that is used goes, and all go with it.
CREATE TABLE recovery_code (
    digest {bytes} NOT NULL PRIMARY KEY,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    second_factor_id {id} NOT NULL REFERENCES second_factor (id) ON DELETE CASCADE
);
CREATE INDEX recovery_code__person_id ON recovery_code (person_id);
CREATE INDEX recovery_code__second_factor_id ON recovery_code (second_factor_id);

-- Wrong codes of a person who knows the password: that right passwords clear what wrong ones counted must not give endless
-- guesses at codes.
CREATE TABLE attempt_guard (
    person_id {id} NOT NULL PRIMARY KEY REFERENCES application_user (id) ON DELETE CASCADE,
    failed {int} NOT NULL,
    locked_until {time},
    expires_on {time} NOT NULL
);
CREATE INDEX attempt_guard__expires_on ON attempt_guard (expires_on);

-- A code that was sent to a person. `purpose` is the MFA instance's id, or what it confirms.
CREATE TABLE one_time_code (
    rid {row},
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    purpose {text} NOT NULL,
    digest {bytes} NOT NULL,
    tries {int} NOT NULL,
    sent_on {time} NOT NULL,
    -- how many were sent since `counted_from`
    sent {int} NOT NULL,
    counted_from {time} NOT NULL,
    -- until when the code is right
    valid_until {time} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE UNIQUE INDEX one_time_code__person_id__purpose ON one_time_code (person_id, purpose);
CREATE INDEX one_time_code__expires_on ON one_time_code (expires_on);

-- Browsers where a person is not asked for a second factor.
CREATE TABLE remembered_device (
    digest {bytes} NOT NULL PRIMARY KEY,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    expires_on {time} NOT NULL
);
CREATE INDEX remembered_device__person_id ON remembered_device (person_id);
CREATE INDEX remembered_device__tenant_id ON remembered_device (tenant_id);
CREATE INDEX remembered_device__expires_on ON remembered_device (expires_on);

-- The version of a tenant's terms that a person accepted last.
CREATE TABLE terms_acceptance (
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    version {text} NOT NULL,
    accepted_on {time} NOT NULL,
    PRIMARY KEY (person_id, tenant_id)
);
CREATE INDEX terms_acceptance__tenant_id ON terms_acceptance (tenant_id);

-- Until when a person is not offered something again.
CREATE TABLE offer_rest (
    rid {row},
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    offer {text} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE UNIQUE INDEX offer_rest__person_id__offer ON offer_rest (person_id, offer);
CREATE INDEX offer_rest__expires_on ON offer_rest (expires_on);

-- The MFA instance whose own mail server sends; none: the store's.
ALTER TABLE mail_message ADD COLUMN mfa_instance_id {id};
