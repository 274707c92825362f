-- Which instances a tenant has.
CREATE TABLE tenant_idp_instance (
    tenant_rid {int} NOT NULL REFERENCES tenant (rid) ON DELETE CASCADE,
    idp_instance_rid {int} NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (tenant_rid, idp_instance_rid)
) {clustered};
CREATE INDEX tenant_idp_instance__idp_instance_rid ON tenant_idp_instance (idp_instance_rid, tenant_rid);
-- the pair that the first start makes, where it was before this table
INSERT INTO tenant_idp_instance (tenant_rid, idp_instance_rid)
    SELECT t.rid, i.rid FROM tenant t JOIN idp_instance i ON i.subscription_id = t.subscription_id
    WHERE t.name_key = 'default' AND i.store_name_key = 'default';

-- Platform users: persons as the platform knows them. idp_instance_id is the instance that one
-- comes from, subscription_id that instance's; audit_key is as in user_account.
CREATE TABLE application_user (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL,
    idp_instance_id {id} NOT NULL REFERENCES idp_instance (id),
    first_name {text},
    first_name_key {text},
    last_name {text},
    last_name_key {text},
    email_address {text},
    email_address_key {text},
    organizational_unit {text},
    picture {text},
    manager_id {id},
    audit_key {bytes} NOT NULL,
    -- since when the user in the store waits to be deleted, as far as synchronizing saw it
    hidden_on {time},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX application_user__id ON application_user (id);
CREATE INDEX application_user__idp_instance_id__id ON application_user (idp_instance_id, id);
CREATE INDEX application_user__last_name_key__id ON application_user (last_name_key, id);
CREATE INDEX application_user__email_address_key__id ON application_user (email_address_key, id);

CREATE TABLE application_group (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL,
    idp_instance_id {id} NOT NULL REFERENCES idp_instance (id),
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX application_group__id ON application_group (id);
CREATE INDEX application_group__idp_instance_id__id ON application_group (idp_instance_id, id);
CREATE INDEX application_group__name_key__id ON application_group (name_key, id);

-- Who a platform user or group is at an instance. The subject of one in a user store is its id.
CREATE TABLE application_identity (
    rid {row},
    id {id} NOT NULL,
    application_user_rid {int} NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    idp_instance_id {id} NOT NULL REFERENCES idp_instance (id),
    issuer {text} NOT NULL,
    subject {text} NOT NULL,
    is_user_store_identity {bool} NOT NULL,
    lifecycle_status {text} NOT NULL
);
CREATE UNIQUE INDEX application_identity__id ON application_identity (id);
CREATE UNIQUE INDEX application_identity__idp_instance_id__subject ON application_identity (idp_instance_id, subject);
CREATE INDEX application_identity__application_user_rid__rid ON application_identity (application_user_rid, rid);

CREATE TABLE application_group_identity (
    rid {row},
    id {id} NOT NULL,
    application_group_rid {int} NOT NULL REFERENCES application_group (rid) ON DELETE CASCADE,
    idp_instance_id {id} NOT NULL REFERENCES idp_instance (id),
    issuer {text} NOT NULL,
    subject {text} NOT NULL,
    is_user_store_identity {bool} NOT NULL,
    lifecycle_status {text} NOT NULL
);
CREATE UNIQUE INDEX application_group_identity__id ON application_group_identity (id);
CREATE UNIQUE INDEX application_group_identity__idp_instance_id__subject ON application_group_identity (idp_instance_id, subject);
CREATE INDEX application_group_identity__application_group_rid__rid ON application_group_identity (application_group_rid, rid);
