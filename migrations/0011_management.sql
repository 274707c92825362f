-- Types of identity providers and of second factors. The seeded ones stay as they are.
CREATE TABLE idp_type (
    rid {row},
    id {id} NOT NULL,
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    provider_type {text} NOT NULL,
    factory_type {text} NOT NULL,
    is_active {bool} NOT NULL,
    is_seeded {bool} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX idp_type__id ON idp_type (id);
CREATE UNIQUE INDEX idp_type__name_key ON idp_type (name_key);

ALTER TABLE idp_instance ADD COLUMN idp_type_id {id} REFERENCES idp_type (id);
ALTER TABLE idp_instance ADD COLUMN position {int} NOT NULL DEFAULT 0;
ALTER TABLE idp_instance ADD COLUMN treat_mfa_factor_claims_as_confirmed {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE idp_instance ADD COLUMN auto_create_platform_user {bool} NOT NULL DEFAULT TRUE;
ALTER TABLE idp_instance ADD COLUMN is_hidden {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE idp_instance ADD COLUMN icon {text};
CREATE INDEX idp_instance__idp_type_id ON idp_instance (idp_type_id);
CREATE INDEX user_account__store ON user_account (store, rid);

CREATE TABLE idp_instance_metadata (
    rid {row},
    idp_instance_rid {int} NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    key {text} NOT NULL,
    value {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX idp_instance_metadata__idp_instance_rid__key ON idp_instance_metadata (idp_instance_rid, key);

CREATE TABLE mfa_instance (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL REFERENCES subscription (id),
    idp_type_id {id} NOT NULL REFERENCES idp_type (id),
    idp_type {text} NOT NULL,
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    position {int} NOT NULL,
    is_active {bool} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX mfa_instance__id ON mfa_instance (id);
CREATE UNIQUE INDEX mfa_instance__subscription_id__name_key ON mfa_instance (subscription_id, name_key);
CREATE INDEX mfa_instance__idp_type_id ON mfa_instance (idp_type_id);

CREATE TABLE ip_address_range (
    rid {row},
    id {id} NOT NULL,
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    lower {text} NOT NULL,
    upper {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX ip_address_range__id ON ip_address_range (id);
CREATE INDEX ip_address_range__tenant_id ON ip_address_range (tenant_id);

CREATE TABLE user_questionnaire_item (
    rid {row},
    id {id} NOT NULL,
    tenant_id {id} NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    key {text} NOT NULL,
    label {text} NOT NULL,
    position {int} NOT NULL,
    is_required {bool} NOT NULL,
    min_length {int},
    max_length {int},
    validation_format {text} NOT NULL,
    validation_pattern {text},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX user_questionnaire_item__id ON user_questionnaire_item (id);
CREATE UNIQUE INDEX user_questionnaire_item__tenant_id__key ON user_questionnaire_item (tenant_id, key);

ALTER TABLE client_app ADD COLUMN access_grant_consent {text} NOT NULL DEFAULT 'Implicit';
ALTER TABLE client_app ADD COLUMN logout_consent {text} NOT NULL DEFAULT 'Implicit';
ALTER TABLE client_app ADD COLUMN allowed_response_types {text} NOT NULL DEFAULT 'code';
ALTER TABLE client_app ADD COLUMN access_token_type {text} NOT NULL DEFAULT 'Jwt';
ALTER TABLE client_app ADD COLUMN security_profile {text} NOT NULL DEFAULT 'None';
ALTER TABLE client_app ADD COLUMN subject_type {text} NOT NULL DEFAULT 'Public';
ALTER TABLE client_app ADD COLUMN resource_filter_enabled {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN scope_filter_enabled {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN backchannel_logout_session_required {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN frontchannel_logout_session_required {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN is_public {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN is_native_application {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN is_restricted {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN include_groups_claims {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN allow_cross_subscription {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN require_pushed_authorization_requests {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN allow_device_authorization_grant {bool} NOT NULL DEFAULT FALSE;
ALTER TABLE client_app ADD COLUMN allow_user_login {bool} NOT NULL DEFAULT TRUE;
ALTER TABLE client_app ADD COLUMN access_token_encryption_enabled_override {bool};
ALTER TABLE client_app ADD COLUMN client_uri {text};
ALTER TABLE client_app ADD COLUMN logo_uri {text};
ALTER TABLE client_app ADD COLUMN backchannel_logout_uri {text};
ALTER TABLE client_app ADD COLUMN frontchannel_logout_uri {text};
ALTER TABLE client_app ADD COLUMN sector_identifier_uri {text};
ALTER TABLE client_app ADD COLUMN id_token_encrypted_response_alg {text};
ALTER TABLE client_app ADD COLUMN id_token_encrypted_response_enc {text};
ALTER TABLE client_app ADD COLUMN userinfo_encrypted_response_alg {text};
ALTER TABLE client_app ADD COLUMN userinfo_encrypted_response_enc {text};
ALTER TABLE client_app ADD COLUMN introspection_encrypted_response_alg {text};
ALTER TABLE client_app ADD COLUMN introspection_encrypted_response_enc {text};
ALTER TABLE client_app ADD COLUMN request_object_signing_alg {text};
ALTER TABLE client_app ADD COLUMN request_object_encryption_alg {text};
ALTER TABLE client_app ADD COLUMN request_object_encryption_enc {text};

-- The secret itself is kept, encrypted, only where it is needed: client_secret_jwt, or reveal.
ALTER TABLE client_app_secret ADD COLUMN sealed_secret {text};
CREATE INDEX client_app_secret__client_app_id ON client_app_secret (client_app_id);

-- What the role applies to, as text, so that one role is there once.
ALTER TABLE client_app_role ADD COLUMN target_key {text} NOT NULL DEFAULT '';
CREATE UNIQUE INDEX client_app_role__client_app_id__role_type__target_key ON client_app_role (client_app_id, role_type, target_key);
CREATE INDEX client_app_role__apply_to_tenant_id ON client_app_role (apply_to_tenant_id);
CREATE INDEX client_app_role__apply_to_idp_instance_id ON client_app_role (apply_to_idp_instance_id);

CREATE TABLE client_app_scope (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    key {text} NOT NULL,
    name {text} NOT NULL,
    description {text},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_scope__id ON client_app_scope (id);
CREATE UNIQUE INDEX client_app_scope__client_app_id__key ON client_app_scope (client_app_id, key);

CREATE TABLE client_app_resource (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    key {text} NOT NULL,
    name {text} NOT NULL,
    description {text},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_resource__id ON client_app_resource (id);
CREATE UNIQUE INDEX client_app_resource__client_app_id__key ON client_app_resource (client_app_id, key);

CREATE TABLE client_app_request_uri (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    uri {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_request_uri__id ON client_app_request_uri (id);
CREATE UNIQUE INDEX client_app_request_uri__client_app_id__uri ON client_app_request_uri (client_app_id, uri);

CREATE TABLE client_app_redirect_uri (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    uri {text} NOT NULL,
    redirect_uri_type {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_redirect_uri__id ON client_app_redirect_uri (id);
CREATE UNIQUE INDEX client_app_redirect_uri__client_app_id__uri__redirect_uri_type ON client_app_redirect_uri (client_app_id, uri, redirect_uri_type);

-- Keys of the client's own: a JWK set, an address of one, or a certificate.
CREATE TABLE client_app_key_set (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    name {text},
    key_use {text} NOT NULL,
    jwks {text},
    jwks_uri {text},
    certificate {bytes},
    kid {text},
    algorithm {text},
    status {text} NOT NULL,
    valid_from {time},
    valid_to {time},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_key_set__id ON client_app_key_set (id);
CREATE UNIQUE INDEX client_app_key_set__client_app_id__name ON client_app_key_set (client_app_id, name);

CREATE TABLE client_app_federated_identity (
    rid {row},
    id {id} NOT NULL,
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    name {text} NOT NULL,
    issuer {text} NOT NULL,
    subject {text} NOT NULL,
    audience {text},
    description {text},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_federated_identity__id ON client_app_federated_identity (id);
CREATE UNIQUE INDEX client_app_federated_identity__client_app_id__name ON client_app_federated_identity (client_app_id, name);

CREATE TABLE client_app_metadata (
    rid {row},
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    key {text} NOT NULL,
    value {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_metadata__client_app_rid__key ON client_app_metadata (client_app_rid, key);

CREATE TABLE client_app_authentication_configuration (
    rid {row},
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    token_endpoint_auth_method {text} NOT NULL,
    require_certificate_bound_access_tokens {bool} NOT NULL,
    dpop_bound_access_tokens {bool} NOT NULL,
    require_dpop_nonce {bool} NOT NULL,
    tls_client_auth_subject_dn {text},
    tls_client_auth_san_dns {text},
    tls_client_auth_san_uri {text},
    tls_client_auth_san_ip {text},
    tls_client_auth_san_email {text},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX client_app_authentication_configuration__client_app_id ON client_app_authentication_configuration (client_app_id);
CREATE UNIQUE INDEX client_app_authentication_configuration__concurrency_token ON client_app_authentication_configuration (concurrency_token);

-- The private key is encrypted under the master key.
CREATE TABLE cert_store (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} REFERENCES subscription (id),
    name {text} NOT NULL,
    description {text},
    cert_type {text} NOT NULL,
    certificate {bytes} NOT NULL,
    private_key {text},
    thumbprint {text} NOT NULL,
    valid_from {time} NOT NULL,
    valid_to {time} NOT NULL,
    issuer {text} NOT NULL,
    serial_number {text} NOT NULL,
    subject {text} NOT NULL,
    apply_to_type {text} NOT NULL,
    apply_to_subscription_id {id} REFERENCES subscription (id),
    apply_to_tenant_id {id} REFERENCES tenant (id),
    certificate_storage_format {text} NOT NULL,
    certificate_password_protection {text} NOT NULL,
    certificate_has_private_key {bool} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX cert_store__id ON cert_store (id);
CREATE INDEX cert_store__cert_type ON cert_store (cert_type, id);
CREATE INDEX cert_store__subscription_id ON cert_store (subscription_id);
CREATE INDEX cert_store__apply_to_subscription_id ON cert_store (apply_to_subscription_id);
CREATE INDEX cert_store__apply_to_tenant_id ON cert_store (apply_to_tenant_id);

CREATE TABLE claim_rule (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL REFERENCES subscription (id),
    name {text} NOT NULL,
    rule_type {text} NOT NULL,
    filter_target {text} NOT NULL,
    transform_target {text} NOT NULL,
    rule_level {text} NOT NULL,
    destination {text} NOT NULL,
    input_source {text} NOT NULL,
    disclosure_mode {text} NOT NULL,
    priority {int} NOT NULL,
    type_evaluation_rule {text},
    value_evaluation_rule {text},
    type_transformation_rule {text},
    value_transformation_rule {text},
    type_transformation_replacement {text},
    value_transformation_replacement {text},
    is_active {bool} NOT NULL,
    apply_to_idp_instance_id {id} REFERENCES idp_instance (id),
    apply_to_subscription_id {id} REFERENCES subscription (id),
    apply_to_tenant_id {id} REFERENCES tenant (id),
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX claim_rule__id ON claim_rule (id);
CREATE INDEX claim_rule__subscription_id ON claim_rule (subscription_id);
CREATE INDEX claim_rule__apply_to_idp_instance_id ON claim_rule (apply_to_idp_instance_id);
CREATE INDEX claim_rule__apply_to_subscription_id ON claim_rule (apply_to_subscription_id);
CREATE INDEX claim_rule__apply_to_tenant_id ON claim_rule (apply_to_tenant_id);

-- What a location belongs to follows from its level; nothing for global ones.
CREATE TABLE custom_asset (
    rid {row},
    location {text} NOT NULL,
    mimetype {text} NOT NULL,
    data {bytes} NOT NULL,
    size {int} NOT NULL,
    file_name {text} NOT NULL,
    subscription_id {id},
    tenant_id {id},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX custom_asset__location ON custom_asset (location);
CREATE INDEX custom_asset__subscription_id ON custom_asset (subscription_id);
CREATE INDEX custom_asset__tenant_id ON custom_asset (tenant_id);

CREATE TABLE custom_view (
    rid {row},
    location {text} NOT NULL,
    content {text} NOT NULL,
    subscription_id {id},
    tenant_id {id},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX custom_view__location ON custom_view (location);
CREATE INDEX custom_view__subscription_id ON custom_view (subscription_id);
CREATE INDEX custom_view__tenant_id ON custom_view (tenant_id);

-- Roles of platform users and groups.
CREATE TABLE role_assignment (
    rid {row},
    id {id} NOT NULL,
    principal_type {text} NOT NULL,
    principal_id {id} NOT NULL,
    role_type {text} NOT NULL,
    apply_to_customer_id {id} REFERENCES customer (id) ON DELETE CASCADE,
    apply_to_subscription_id {id} REFERENCES subscription (id) ON DELETE CASCADE,
    apply_to_tenant_id {id} REFERENCES tenant (id) ON DELETE CASCADE,
    apply_to_idp_instance_id {id} REFERENCES idp_instance (id) ON DELETE CASCADE,
    target_key {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX role_assignment__id ON role_assignment (id);
CREATE UNIQUE INDEX role_assignment__principal_id__role_type__target_key ON role_assignment (principal_id, role_type, target_key);
CREATE INDEX role_assignment__apply_to_customer_id ON role_assignment (apply_to_customer_id);
CREATE INDEX role_assignment__apply_to_subscription_id ON role_assignment (apply_to_subscription_id);
CREATE INDEX role_assignment__apply_to_tenant_id ON role_assignment (apply_to_tenant_id);
CREATE INDEX role_assignment__apply_to_idp_instance_id ON role_assignment (apply_to_idp_instance_id);

-- What is assigned to what: pairs of row numbers, both directions one look-up.
CREATE TABLE tenant_mfa_instance (
    tenant_rid {int} NOT NULL REFERENCES tenant (rid) ON DELETE CASCADE,
    mfa_instance_rid {int} NOT NULL REFERENCES mfa_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (tenant_rid, mfa_instance_rid)
) {clustered};
CREATE INDEX tenant_mfa_instance__mfa_instance_rid ON tenant_mfa_instance (mfa_instance_rid, tenant_rid);
CREATE TABLE tenant_client_app (
    tenant_rid {int} NOT NULL REFERENCES tenant (rid) ON DELETE CASCADE,
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    PRIMARY KEY (tenant_rid, client_app_rid)
) {clustered};
CREATE INDEX tenant_client_app__client_app_rid ON tenant_client_app (client_app_rid, tenant_rid);
CREATE TABLE idp_instance_mfa_instance (
    idp_instance_rid {int} NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    mfa_instance_rid {int} NOT NULL REFERENCES mfa_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (idp_instance_rid, mfa_instance_rid)
) {clustered};
CREATE INDEX idp_instance_mfa_instance__mfa_instance_rid ON idp_instance_mfa_instance (mfa_instance_rid, idp_instance_rid);
CREATE TABLE idp_instance_client_app (
    idp_instance_rid {int} NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    PRIMARY KEY (idp_instance_rid, client_app_rid)
) {clustered};
CREATE INDEX idp_instance_client_app__client_app_rid ON idp_instance_client_app (client_app_rid, idp_instance_rid);
CREATE TABLE idp_instance_cert_store (
    idp_instance_rid {int} NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    cert_store_rid {int} NOT NULL REFERENCES cert_store (rid) ON DELETE CASCADE,
    PRIMARY KEY (idp_instance_rid, cert_store_rid)
) {clustered};
CREATE INDEX idp_instance_cert_store__cert_store_rid ON idp_instance_cert_store (cert_store_rid, idp_instance_rid);
CREATE TABLE client_app_mfa_instance (
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    mfa_instance_rid {int} NOT NULL REFERENCES mfa_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, mfa_instance_rid)
) {clustered};
CREATE INDEX client_app_mfa_instance__mfa_instance_rid ON client_app_mfa_instance (mfa_instance_rid, client_app_rid);
CREATE TABLE client_app_claim_rule (
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    claim_rule_rid {int} NOT NULL REFERENCES claim_rule (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, claim_rule_rid)
) {clustered};
CREATE INDEX client_app_claim_rule__claim_rule_rid ON client_app_claim_rule (claim_rule_rid, client_app_rid);
CREATE TABLE client_app_token_exchange (
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    allowed_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, allowed_rid)
) {clustered};
CREATE INDEX client_app_token_exchange__allowed_rid ON client_app_token_exchange (allowed_rid, client_app_rid);
CREATE TABLE client_app_authorized_user (
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    application_user_rid {int} NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, application_user_rid)
) {clustered};
CREATE INDEX client_app_authorized_user__application_user_rid ON client_app_authorized_user (application_user_rid, client_app_rid);
CREATE TABLE client_app_authorized_group (
    client_app_rid {int} NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    application_group_rid {int} NOT NULL REFERENCES application_group (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, application_group_rid)
) {clustered};
CREATE INDEX client_app_authorized_group__application_group_rid ON client_app_authorized_group (application_group_rid, client_app_rid);
