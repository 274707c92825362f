-- Browsers in which a person administers by pages. There is no token: each page reads this row and that of the sign-in.
CREATE TABLE console_session (
    digest {bytes} NOT NULL PRIMARY KEY,
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    sign_in_session_id {id} NOT NULL,
    acr {text} NOT NULL,
    made_on {time} NOT NULL,
    seen_on {time} NOT NULL,
    proven_on {time} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE INDEX console_session__person_id ON console_session (person_id);
CREATE INDEX console_session__expires_on ON console_session (expires_on);

-- How a person wants pages to look.
CREATE TABLE console_preference (
    person_id {id} NOT NULL PRIMARY KEY REFERENCES application_user (id) ON DELETE CASCADE,
    theme {text} NOT NULL,
    language {text} NOT NULL,
    density {text} NOT NULL
);

-- The link by which the first administrator comes in: one at a time.
CREATE TABLE console_setup (
    id {int} NOT NULL PRIMARY KEY,
    digest {bytes} NOT NULL,
    expires_on {time} NOT NULL
);
