-- Devices that wait for a person to let them in (RFC 8628). Both codes are kept as keyed digests.
CREATE TABLE device_authorization (
    digest {bytes} NOT NULL PRIMARY KEY,
    user_code {bytes} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    issuing_tenant_id {id} REFERENCES tenant (id) ON DELETE CASCADE,
    scope {text} NOT NULL,
    resources {text} NOT NULL,
    -- Pending, Approved, Denied or Used
    status {text} NOT NULL,
    -- the grant that it becomes, and what is granted, once it is approved
    grant_id {id},
    sealed {bytes},
    expires_on {time} NOT NULL
);
CREATE UNIQUE INDEX device_authorization__user_code ON device_authorization (user_code);
CREATE INDEX device_authorization__client_app_id ON device_authorization (client_app_id);
CREATE INDEX device_authorization__issuing_tenant_id ON device_authorization (issuing_tenant_id);
CREATE INDEX device_authorization__expires_on ON device_authorization (expires_on);
