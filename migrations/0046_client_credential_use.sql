-- When a secret or a key set of a client app last proved it, to an hour. Rows of those that were deleted go with the app.
CREATE TABLE client_credential_use (
    credential_id {id} NOT NULL PRIMARY KEY,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    used_on {time} NOT NULL
);
CREATE INDEX client_credential_use__client_app_id ON client_credential_use (client_app_id);
