CREATE TABLE subscription (
    rid {row},
    id {id} NOT NULL,
    customer_id {id} NOT NULL REFERENCES customer (id),
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    status {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX subscription__id ON subscription (id);
CREATE UNIQUE INDEX subscription__customer_id__name_key ON subscription (customer_id, name_key);

CREATE TABLE tenant (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL REFERENCES subscription (id),
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    description {text},
    is_active {bool} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX tenant__id ON tenant (id);
CREATE UNIQUE INDEX tenant__subscription_id__name_key ON tenant (subscription_id, name_key);

-- A user store is an instance of type UserStore; rid is the store's number in its own tables,
-- which is never used again.
-- store_name_key is set for those only: their names are unique in the installation.
CREATE TABLE idp_instance (
    rid {counted},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL REFERENCES subscription (id),
    idp_type {text} NOT NULL,
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    store_name_key {text},
    is_active {bool} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX idp_instance__id ON idp_instance (id);
CREATE UNIQUE INDEX idp_instance__subscription_id__name_key ON idp_instance (subscription_id, name_key);
CREATE UNIQUE INDEX idp_instance__store_name_key ON idp_instance (store_name_key);

CREATE TABLE client_app (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL REFERENCES subscription (id),
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    enabled {bool} NOT NULL,
    allow_client_credential_login {bool} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app__id ON client_app (id);
CREATE UNIQUE INDEX client_app__subscription_id__name_key ON client_app (subscription_id, name_key);
CREATE INDEX client_app__name_key ON client_app (name_key);

-- Only a keyed digest of a secret is kept.
CREATE TABLE client_app_secret (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    name {text} NOT NULL,
    digest {bytes} NOT NULL,
    expiry {time},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_secret__id ON client_app_secret (id);
CREATE UNIQUE INDEX client_app_secret__client_app_id__digest ON client_app_secret (client_app_id, digest);

CREATE TABLE client_app_role (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    role_type {text} NOT NULL,
    apply_to_tenant_id {id} REFERENCES tenant (id),
    apply_to_idp_instance_id {id} REFERENCES idp_instance (id),
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_role__id ON client_app_role (id);
CREATE INDEX client_app_role__client_app_id ON client_app_role (client_app_id);
