-- Refused requests of client apps, for their administrators: one row for each client app, endpoint and error.
CREATE TABLE client_app_refusal (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    endpoint {text} NOT NULL,
    error {text} NOT NULL,
    -- of the last request that is recorded
    reason {text} NOT NULL,
    sent {text} NOT NULL,
    registered {text} NOT NULL,
    first_on {time} NOT NULL,
    last_on {time} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE UNIQUE INDEX client_app_refusal__id ON client_app_refusal (id);
CREATE UNIQUE INDEX client_app_refusal__client_app_id__endpoint__error ON client_app_refusal (client_app_id, endpoint, error);
CREATE INDEX client_app_refusal__expires_on ON client_app_refusal (expires_on);

-- Failed sign-ins of a person from one address within an hour are one record, which counts them.
ALTER TABLE sign_in_record ADD COLUMN attempts {int} NOT NULL DEFAULT 1;
ALTER TABLE sign_in_record ADD COLUMN last_attempt_on {time};

-- The record that counts the failed sign-ins of a person from an address, by a digest of both, until the hour is over.
CREATE TABLE sign_in_attempt (
    digest {bytes} NOT NULL PRIMARY KEY,
    record_id {id} NOT NULL,
    expires_on {time} NOT NULL
);
CREATE INDEX sign_in_attempt__expires_on ON sign_in_attempt (expires_on);
