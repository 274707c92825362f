-- What a person proved until then, in a sign-in under way, counts no longer: a password was set since, or the person was
-- shut out. A row is of use for as long as a sign-in may take.
CREATE TABLE sign_in_cutoff (
    person_id {id} NOT NULL PRIMARY KEY REFERENCES application_user (id) ON DELETE CASCADE,
    proven_until {time} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE INDEX sign_in_cutoff__expires_on ON sign_in_cutoff (expires_on);

-- A sign-in under way that is too large for the browser's cookie, sealed for that browser.
CREATE TABLE sign_in_flow (
    id {text} NOT NULL PRIMARY KEY,
    sealed {bytes} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE INDEX sign_in_flow__expires_on ON sign_in_flow (expires_on);
