-- The tables and indexes of the newest schema, as SQLite has them; migrations/README.md has the types on PostgreSQL.
-- A test makes this file from the migrations.

CREATE TABLE application_group (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL,
    idp_instance_id BLOB NOT NULL REFERENCES idp_instance (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, external_id TEXT, provisioned_name TEXT, provisioned_name_key TEXT);
CREATE UNIQUE INDEX application_group__id ON application_group (id);
CREATE UNIQUE INDEX application_group__idp_instance_id__external_id ON application_group (idp_instance_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX application_group__idp_instance_id__id ON application_group (idp_instance_id, id);
CREATE UNIQUE INDEX application_group__idp_instance_id__provisioned_name_key ON application_group (idp_instance_id, provisioned_name_key) WHERE provisioned_name_key IS NOT NULL;
CREATE INDEX application_group__name_key__id ON application_group (name_key, id);
CREATE TABLE application_group_identity (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    application_group_rid INTEGER NOT NULL REFERENCES application_group (rid) ON DELETE CASCADE,
    idp_instance_id BLOB NOT NULL REFERENCES idp_instance (id),
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    is_user_store_identity BOOLEAN NOT NULL,
    lifecycle_status TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, set_by BLOB, set_on INTEGER);
CREATE INDEX application_group_identity__application_group_rid__rid ON application_group_identity (application_group_rid, rid);
CREATE UNIQUE INDEX application_group_identity__id ON application_group_identity (id);
CREATE UNIQUE INDEX application_group_identity__idp_instance_id__subject ON application_group_identity (idp_instance_id, subject);
CREATE TABLE application_group_member (
    application_group_rid INTEGER NOT NULL REFERENCES application_group (rid) ON DELETE CASCADE,
    application_user_rid INTEGER NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    PRIMARY KEY (application_group_rid, application_user_rid)
) WITHOUT ROWID;
CREATE INDEX application_group_member__application_user_rid ON application_group_member (application_user_rid);
CREATE TABLE application_identity (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    application_user_rid INTEGER NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    idp_instance_id BLOB NOT NULL REFERENCES idp_instance (id),
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    is_user_store_identity BOOLEAN NOT NULL,
    lifecycle_status TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, set_by BLOB, set_on INTEGER);
CREATE INDEX application_identity__application_user_rid__rid ON application_identity (application_user_rid, rid);
CREATE UNIQUE INDEX application_identity__id ON application_identity (id);
CREATE UNIQUE INDEX application_identity__idp_instance_id__subject ON application_identity (idp_instance_id, subject);
CREATE TABLE application_user (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL,
    idp_instance_id BLOB NOT NULL REFERENCES idp_instance (id),
    first_name TEXT,
    first_name_key TEXT,
    last_name TEXT,
    last_name_key TEXT,
    email_address TEXT,
    email_address_key TEXT,
    organizational_unit TEXT,
    picture TEXT,
    manager_id BLOB,
    audit_key BLOB NOT NULL,
    -- since when the user in the store waits to be deleted, as far as synchronizing saw it
    hidden_on INTEGER,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, external_id TEXT, user_name TEXT, user_name_key TEXT, is_active BOOLEAN NOT NULL DEFAULT TRUE);
CREATE INDEX application_user__email_address_key__id ON application_user (email_address_key, id);
CREATE UNIQUE INDEX application_user__id ON application_user (id);
CREATE UNIQUE INDEX application_user__idp_instance_id__external_id ON application_user (idp_instance_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX application_user__idp_instance_id__id ON application_user (idp_instance_id, id);
CREATE UNIQUE INDEX application_user__idp_instance_id__user_name_key ON application_user (idp_instance_id, user_name_key) WHERE user_name_key IS NOT NULL;
CREATE INDEX application_user__last_name_key__id ON application_user (last_name_key, id);
CREATE TABLE attempt_at_nobody (
    store INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    attempt BLOB NOT NULL,
    PRIMARY KEY (store, slot)
)WITHOUT ROWID;
CREATE TABLE attempt_guard (
    person_id BLOB NOT NULL PRIMARY KEY REFERENCES application_user (id) ON DELETE CASCADE,
    failed INTEGER NOT NULL,
    locked_until INTEGER,
    expires_on INTEGER NOT NULL
);
CREATE INDEX attempt_guard__expires_on ON attempt_guard (expires_on);
CREATE TABLE audit_compaction (position INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE audit_entry (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    timestamp INTEGER NOT NULL,
    actor TEXT,
    area TEXT NOT NULL,
    primary_key TEXT NOT NULL,
    category TEXT NOT NULL,
    action TEXT NOT NULL,
    data_source TEXT NOT NULL,
    original_content TEXT,
    current_content TEXT,
    original_salt BLOB,
    current_salt BLOB,
    original_digest BLOB,
    current_digest BLOB,
    signature BLOB NOT NULL,
    signature_public_key_info BLOB NOT NULL,
    person BLOB);
CREATE INDEX audit_entry__store__primary_key__rid ON audit_entry (store, primary_key, rid);
CREATE INDEX audit_entry__store__rid ON audit_entry (store, rid);
CREATE TABLE audit_key (
    key_id TEXT NOT NULL PRIMARY KEY,
    jwk TEXT NOT NULL,
    created_on INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE audit_leaf (
    store INTEGER NOT NULL,
    position INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    PRIMARY KEY (store, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX audit_leaf__entry ON audit_leaf (entry);
CREATE TABLE audit_node (
    store INTEGER NOT NULL,
    level INTEGER NOT NULL,
    position INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (store, level, position)
) WITHOUT ROWID;
CREATE TABLE audit_pending (
    entry INTEGER NOT NULL PRIMARY KEY,
    store INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_pending__store__entry ON audit_pending (store, entry);
CREATE TABLE audit_tree (
    store INTEGER NOT NULL PRIMARY KEY,
    size INTEGER NOT NULL,
    checkpoint TEXT,
    made_on INTEGER
) WITHOUT ROWID;
CREATE TABLE authorization_code (
    digest BLOB NOT NULL PRIMARY KEY,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    grant_id BLOB NOT NULL,
    sealed BLOB NOT NULL,
    -- how often it was shown wrongly
    misses INTEGER NOT NULL,
    used_on INTEGER,
    expires_on INTEGER NOT NULL
);
CREATE INDEX authorization_code__client_app_id ON authorization_code (client_app_id);
CREATE INDEX authorization_code__expires_on ON authorization_code (expires_on);
CREATE TABLE cert_store (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB REFERENCES subscription (id),
    name TEXT NOT NULL,
    description TEXT,
    cert_type TEXT NOT NULL,
    certificate BLOB NOT NULL,
    private_key TEXT,
    thumbprint TEXT NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER NOT NULL,
    issuer TEXT NOT NULL,
    serial_number TEXT NOT NULL,
    subject TEXT NOT NULL,
    apply_to_type TEXT NOT NULL,
    apply_to_subscription_id BLOB REFERENCES subscription (id),
    apply_to_tenant_id BLOB REFERENCES tenant (id),
    certificate_storage_format TEXT NOT NULL,
    certificate_password_protection TEXT NOT NULL,
    certificate_has_private_key BOOLEAN NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX cert_store__apply_to_subscription_id ON cert_store (apply_to_subscription_id);
CREATE INDEX cert_store__apply_to_tenant_id ON cert_store (apply_to_tenant_id);
CREATE INDEX cert_store__cert_type ON cert_store (cert_type, id);
CREATE UNIQUE INDEX cert_store__id ON cert_store (id);
CREATE INDEX cert_store__subscription_id ON cert_store (subscription_id);
CREATE TABLE claim_rule (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL REFERENCES subscription (id),
    name TEXT NOT NULL,
    rule_type TEXT NOT NULL,
    filter_target TEXT NOT NULL,
    transform_target TEXT NOT NULL,
    rule_level TEXT NOT NULL,
    destination TEXT NOT NULL,
    input_source TEXT NOT NULL,
    disclosure_mode TEXT NOT NULL,
    priority INTEGER NOT NULL,
    type_evaluation_rule TEXT,
    value_evaluation_rule TEXT,
    type_transformation_rule TEXT,
    value_transformation_rule TEXT,
    type_transformation_replacement TEXT,
    value_transformation_replacement TEXT,
    is_active BOOLEAN NOT NULL,
    apply_to_idp_instance_id BLOB REFERENCES idp_instance (id),
    apply_to_subscription_id BLOB REFERENCES subscription (id),
    apply_to_tenant_id BLOB REFERENCES tenant (id),
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX claim_rule__apply_to_idp_instance_id ON claim_rule (apply_to_idp_instance_id);
CREATE INDEX claim_rule__apply_to_subscription_id ON claim_rule (apply_to_subscription_id);
CREATE INDEX claim_rule__apply_to_tenant_id ON claim_rule (apply_to_tenant_id);
CREATE UNIQUE INDEX claim_rule__id ON claim_rule (id);
CREATE INDEX claim_rule__subscription_id ON claim_rule (subscription_id);
CREATE TABLE client_app (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL REFERENCES subscription (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    allow_client_credential_login BOOLEAN NOT NULL,
    concurrency_token TEXT NOT NULL,
    access_grant_consent TEXT NOT NULL DEFAULT 'Implicit', logout_consent TEXT NOT NULL DEFAULT 'Implicit', allowed_response_types TEXT NOT NULL DEFAULT 'code', access_token_type TEXT NOT NULL DEFAULT 'Jwt', security_profile TEXT NOT NULL DEFAULT 'None', subject_type TEXT NOT NULL DEFAULT 'Public', resource_filter_enabled BOOLEAN NOT NULL DEFAULT FALSE, scope_filter_enabled BOOLEAN NOT NULL DEFAULT FALSE, backchannel_logout_session_required BOOLEAN NOT NULL DEFAULT FALSE, frontchannel_logout_session_required BOOLEAN NOT NULL DEFAULT FALSE, is_public BOOLEAN NOT NULL DEFAULT FALSE, is_native_application BOOLEAN NOT NULL DEFAULT FALSE, is_restricted BOOLEAN NOT NULL DEFAULT FALSE, include_groups_claims BOOLEAN NOT NULL DEFAULT FALSE, allow_cross_subscription BOOLEAN NOT NULL DEFAULT FALSE, require_pushed_authorization_requests BOOLEAN NOT NULL DEFAULT FALSE, allow_device_authorization_grant BOOLEAN NOT NULL DEFAULT FALSE, allow_user_login BOOLEAN NOT NULL DEFAULT TRUE, access_token_encryption_enabled_override BOOLEAN, client_uri TEXT, logo_uri TEXT, backchannel_logout_uri TEXT, frontchannel_logout_uri TEXT, sector_identifier_uri TEXT, id_token_encrypted_response_alg TEXT, id_token_encrypted_response_enc TEXT, userinfo_encrypted_response_alg TEXT, userinfo_encrypted_response_enc TEXT, introspection_encrypted_response_alg TEXT, introspection_encrypted_response_enc TEXT, request_object_signing_alg TEXT, request_object_encryption_alg TEXT, request_object_encryption_enc TEXT, last_entry INTEGER NOT NULL DEFAULT 0, pkce TEXT NOT NULL DEFAULT 'AsTenant', id_token_claims TEXT NOT NULL DEFAULT 'Minimal', refresh_tokens TEXT NOT NULL DEFAULT 'OfflineAccess');
CREATE UNIQUE INDEX client_app__id ON client_app (id);
CREATE INDEX client_app__name_key ON client_app (name_key);
CREATE UNIQUE INDEX client_app__subscription_id__name_key ON client_app (subscription_id, name_key);
CREATE TABLE client_app_authentication_configuration (
    rid INTEGER PRIMARY KEY,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    token_endpoint_auth_method TEXT NOT NULL,
    require_certificate_bound_access_tokens BOOLEAN NOT NULL,
    dpop_bound_access_tokens BOOLEAN NOT NULL,
    require_dpop_nonce BOOLEAN NOT NULL,
    tls_client_auth_subject_dn TEXT,
    tls_client_auth_san_dns TEXT,
    tls_client_auth_san_uri TEXT,
    tls_client_auth_san_ip TEXT,
    tls_client_auth_san_email TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_authentication_configuration__client_app_id ON client_app_authentication_configuration (client_app_id);
CREATE UNIQUE INDEX client_app_authentication_configuration__concurrency_token ON client_app_authentication_configuration (concurrency_token);
CREATE TABLE client_app_authorized_group (
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    application_group_rid INTEGER NOT NULL REFERENCES application_group (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, application_group_rid)
) WITHOUT ROWID;
CREATE INDEX client_app_authorized_group__application_group_rid ON client_app_authorized_group (application_group_rid, client_app_rid);
CREATE TABLE client_app_authorized_user (
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    application_user_rid INTEGER NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, application_user_rid)
) WITHOUT ROWID;
CREATE INDEX client_app_authorized_user__application_user_rid ON client_app_authorized_user (application_user_rid, client_app_rid);
CREATE TABLE client_app_claim_rule (
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    claim_rule_rid INTEGER NOT NULL REFERENCES claim_rule (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, claim_rule_rid)
) WITHOUT ROWID;
CREATE INDEX client_app_claim_rule__claim_rule_rid ON client_app_claim_rule (claim_rule_rid, client_app_rid);
CREATE TABLE "client_app_controller" (
    client_app_id BLOB NOT NULL,
    actor_id BLOB NOT NULL, noted_on INTEGER,
    PRIMARY KEY (client_app_id, actor_id)
) WITHOUT ROWID;
CREATE TABLE client_app_federated_identity (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    audience TEXT,
    description TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_federated_identity__client_app_id__name ON client_app_federated_identity (client_app_id, name);
CREATE UNIQUE INDEX client_app_federated_identity__id ON client_app_federated_identity (id);
CREATE TABLE client_app_key_set (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    name TEXT,
    key_use TEXT NOT NULL,
    jwks TEXT,
    jwks_uri TEXT,
    certificate BLOB,
    kid TEXT,
    algorithm TEXT,
    status TEXT NOT NULL,
    valid_from INTEGER,
    valid_to INTEGER,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_key_set__client_app_id__name ON client_app_key_set (client_app_id, name);
CREATE UNIQUE INDEX client_app_key_set__id ON client_app_key_set (id);
CREATE TABLE client_app_metadata (
    rid INTEGER PRIMARY KEY,
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, value TEXT);
CREATE UNIQUE INDEX client_app_metadata__client_app_rid__key ON client_app_metadata (client_app_rid, key);
CREATE TABLE client_app_mfa_instance (
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    mfa_instance_rid INTEGER NOT NULL REFERENCES mfa_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, mfa_instance_rid)
) WITHOUT ROWID;
CREATE INDEX client_app_mfa_instance__mfa_instance_rid ON client_app_mfa_instance (mfa_instance_rid, client_app_rid);
CREATE TABLE client_app_redirect_uri (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    redirect_uri_type TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_redirect_uri__client_app_id__uri__redirect_uri_type ON client_app_redirect_uri (client_app_id, uri, redirect_uri_type);
CREATE UNIQUE INDEX client_app_redirect_uri__id ON client_app_redirect_uri (id);
CREATE TABLE client_app_refusal (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    error TEXT NOT NULL,
    -- of the last request that is recorded
    reason TEXT NOT NULL,
    sent TEXT NOT NULL,
    registered TEXT NOT NULL,
    first_on INTEGER NOT NULL,
    last_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE UNIQUE INDEX client_app_refusal__client_app_id__endpoint__error ON client_app_refusal (client_app_id, endpoint, error);
CREATE INDEX client_app_refusal__expires_on ON client_app_refusal (expires_on);
CREATE UNIQUE INDEX client_app_refusal__id ON client_app_refusal (id);
CREATE TABLE client_app_request_uri (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_request_uri__client_app_id__uri ON client_app_request_uri (client_app_id, uri);
CREATE UNIQUE INDEX client_app_request_uri__id ON client_app_request_uri (id);
CREATE TABLE client_app_resource (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_resource__client_app_id__key ON client_app_resource (client_app_id, key);
CREATE UNIQUE INDEX client_app_resource__id ON client_app_resource (id);
CREATE INDEX client_app_resource__key ON client_app_resource (key, client_app_id);
CREATE TABLE client_app_role (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    role_type TEXT NOT NULL,
    apply_to_tenant_id BLOB REFERENCES tenant (id),
    apply_to_idp_instance_id BLOB REFERENCES idp_instance (id),
    concurrency_token TEXT NOT NULL,
    target_key TEXT NOT NULL DEFAULT '', last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX client_app_role__apply_to_idp_instance_id ON client_app_role (apply_to_idp_instance_id);
CREATE INDEX client_app_role__apply_to_tenant_id ON client_app_role (apply_to_tenant_id);
CREATE INDEX client_app_role__client_app_id ON client_app_role (client_app_id);
CREATE UNIQUE INDEX client_app_role__client_app_id__role_type__target_key ON client_app_role (client_app_id, role_type, target_key);
CREATE UNIQUE INDEX client_app_role__id ON client_app_role (id);
CREATE TABLE client_app_scope (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX client_app_scope__client_app_id__key ON client_app_scope (client_app_id, key);
CREATE UNIQUE INDEX client_app_scope__id ON client_app_scope (id);
CREATE TABLE client_app_secret (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    digest BLOB NOT NULL,
    expiry INTEGER,
    concurrency_token TEXT NOT NULL,
    sealed_secret TEXT, last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX client_app_secret__client_app_id ON client_app_secret (client_app_id);
CREATE UNIQUE INDEX client_app_secret__client_app_id__digest ON client_app_secret (client_app_id, digest);
CREATE UNIQUE INDEX client_app_secret__id ON client_app_secret (id);
CREATE TABLE client_app_token_exchange (
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    allowed_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    PRIMARY KEY (client_app_rid, allowed_rid)
) WITHOUT ROWID;
CREATE INDEX client_app_token_exchange__allowed_rid ON client_app_token_exchange (allowed_rid, client_app_rid);
CREATE TABLE client_credential_use (
    credential_id BLOB NOT NULL PRIMARY KEY,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    used_on INTEGER NOT NULL
);
CREATE INDEX client_credential_use__client_app_id ON client_credential_use (client_app_id);
CREATE TABLE console_preference (
    person_id BLOB NOT NULL PRIMARY KEY REFERENCES application_user (id) ON DELETE CASCADE,
    theme TEXT NOT NULL,
    language TEXT NOT NULL,
    density TEXT NOT NULL,
    zone TEXT NOT NULL DEFAULT '', single_keys TEXT NOT NULL DEFAULT '');
CREATE TABLE console_session (
    digest BLOB NOT NULL PRIMARY KEY,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    sign_in_session_id BLOB NOT NULL,
    acr TEXT NOT NULL,
    made_on INTEGER NOT NULL,
    seen_on INTEGER NOT NULL,
    proven_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE INDEX console_session__expires_on ON console_session (expires_on);
CREATE INDEX console_session__person_id ON console_session (person_id);
CREATE TABLE console_setup (
    id INTEGER NOT NULL PRIMARY KEY,
    digest BLOB NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE TABLE custom_asset (
    rid INTEGER PRIMARY KEY,
    location TEXT NOT NULL,
    mimetype TEXT NOT NULL,
    data BLOB NOT NULL,
    size INTEGER NOT NULL,
    file_name TEXT NOT NULL,
    subscription_id BLOB,
    tenant_id BLOB,
    concurrency_token TEXT NOT NULL,
    client_app_id BLOB REFERENCES client_app (id), last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX custom_asset__client_app_id ON custom_asset (client_app_id);
CREATE UNIQUE INDEX custom_asset__location ON custom_asset (location);
CREATE INDEX custom_asset__subscription_id ON custom_asset (subscription_id);
CREATE INDEX custom_asset__tenant_id ON custom_asset (tenant_id);
CREATE TABLE custom_view (
    rid INTEGER PRIMARY KEY,
    location TEXT NOT NULL,
    content TEXT NOT NULL,
    subscription_id BLOB,
    tenant_id BLOB,
    concurrency_token TEXT NOT NULL,
    client_app_id BLOB REFERENCES client_app (id), last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX custom_view__client_app_id ON custom_view (client_app_id);
CREATE UNIQUE INDEX custom_view__location ON custom_view (location);
CREATE INDEX custom_view__subscription_id ON custom_view (subscription_id);
CREATE INDEX custom_view__tenant_id ON custom_view (tenant_id);
CREATE TABLE customer (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    address TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX customer__id ON customer (id);
CREATE INDEX customer__name_key__id ON customer (name_key, id);
CREATE TABLE device_authorization (
    digest BLOB NOT NULL PRIMARY KEY,
    user_code BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    issuing_tenant_id BLOB REFERENCES tenant (id) ON DELETE CASCADE,
    scope TEXT NOT NULL,
    resources TEXT NOT NULL,
    -- Pending, Approved, Denied or Used
    status TEXT NOT NULL,
    -- the grant that it becomes, and what is granted, once it is approved
    grant_id BLOB,
    sealed BLOB,
    expires_on INTEGER NOT NULL
);
CREATE INDEX device_authorization__client_app_id ON device_authorization (client_app_id);
CREATE INDEX device_authorization__expires_on ON device_authorization (expires_on);
CREATE INDEX device_authorization__issuing_tenant_id ON device_authorization (issuing_tenant_id);
CREATE UNIQUE INDEX device_authorization__user_code ON device_authorization (user_code);
CREATE TABLE directory_refusal (
    idp_instance_id BLOB NOT NULL REFERENCES idp_instance (id) ON DELETE CASCADE,
    subject_id BLOB NOT NULL,
    told_on INTEGER NOT NULL, id BLOB,
    PRIMARY KEY (idp_instance_id, subject_id)
) WITHOUT ROWID;
CREATE TABLE erasure (
    number INTEGER NOT NULL PRIMARY KEY,
    store INTEGER NOT NULL,
    resource TEXT NOT NULL,
    person BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE event_attempt (
    rid INTEGER PRIMARY KEY AUTOINCREMENT,
    store INTEGER,
    subscription_id BLOB NOT NULL REFERENCES event_subscription (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tried_on INTEGER NOT NULL,
    status INTEGER,
    reason TEXT,
    duration INTEGER NOT NULL
);
CREATE INDEX event_attempt__subscription_id__rid ON event_attempt (subscription_id, rid);
CREATE INDEX event_attempt__tried_on ON event_attempt (tried_on);
CREATE TABLE event_delivery (
    rid INTEGER PRIMARY KEY AUTOINCREMENT,
    subscription_id BLOB NOT NULL REFERENCES event_subscription (id) ON DELETE CASCADE,
    trail INTEGER NOT NULL,
    position INTEGER NOT NULL,
    event TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    due_on INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    dead_on INTEGER
);
CREATE INDEX event_delivery__dead_on ON event_delivery (dead_on);
CREATE INDEX event_delivery__subscription_id__due_on ON event_delivery (subscription_id, due_on);
CREATE INDEX event_delivery__subscription_id__subject__rid ON event_delivery (subscription_id, subject, rid);
CREATE TABLE event_pending (
    trail INTEGER NOT NULL,
    event INTEGER NOT NULL,
    tree INTEGER,
    PRIMARY KEY (trail, event)
) WITHOUT ROWID;
CREATE TABLE event_place (
    trail INTEGER NOT NULL,
    position INTEGER NOT NULL,
    event INTEGER NOT NULL,
    PRIMARY KEY (trail, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX event_place__event ON event_place (event);
CREATE TABLE event_reader (
    subscription_id BLOB NOT NULL REFERENCES event_subscription (id) ON DELETE CASCADE,
    trail INTEGER NOT NULL,
    position INTEGER NOT NULL,
    event INTEGER NOT NULL,
    since INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription_id, trail)
) WITHOUT ROWID;
CREATE TABLE event_subscriber (
    subscription_id BLOB NOT NULL PRIMARY KEY REFERENCES event_subscription (id) ON DELETE CASCADE,
    failures INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    paused_until INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    last_success_on INTEGER,
    last_failure_on INTEGER,
    last_failure TEXT,
    disabled_on INTEGER
) WITHOUT ROWID;
CREATE TABLE event_subscription (
    rid INTEGER PRIMARY KEY,
    store INTEGER,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    types TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    ordering TEXT NOT NULL,
    contact TEXT,
    headers TEXT NOT NULL,
    subscription_id BLOB REFERENCES subscription (id),
    apply_to_tenant_id BLOB REFERENCES tenant (id),
    sealed_headers TEXT,
    signing_secret TEXT,
    former_secret TEXT,
    former_until INTEGER,
    tested_url TEXT,
    begins_after TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX event_subscription__apply_to_tenant_id ON event_subscription (apply_to_tenant_id);
CREATE UNIQUE INDEX event_subscription__id ON event_subscription (id);
CREATE INDEX event_subscription__store ON event_subscription (store);
CREATE INDEX event_subscription__subscription_id ON event_subscription (subscription_id);
CREATE TABLE event_trail (
    trail INTEGER NOT NULL PRIMARY KEY,
    placed INTEGER NOT NULL,
    pruned INTEGER NOT NULL,
    leaves INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE group_edge (
    parent_rid INTEGER NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    child_rid INTEGER NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    PRIMARY KEY (parent_rid, child_rid)
) WITHOUT ROWID;
CREATE INDEX group_edge__child_rid__parent_rid ON group_edge (child_rid, parent_rid);
CREATE TABLE group_member (
    group_rid INTEGER NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    user_rid INTEGER NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    PRIMARY KEY (group_rid, user_rid)
) WITHOUT ROWID;
CREATE INDEX group_member__user_rid__group_rid ON group_member (user_rid, group_rid);
CREATE TABLE group_metadata (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    group_rid INTEGER NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, value TEXT);
CREATE UNIQUE INDEX group_metadata__group_rid__key ON group_metadata (group_rid, key);
CREATE TABLE idempotent_answer (
    caller BLOB NOT NULL,
    key_digest BLOB NOT NULL,
    request_digest BLOB NOT NULL,
    attempt BLOB NOT NULL,
    started_on INTEGER NOT NULL,
    answer BLOB, persons BLOB, shows_of INTEGER, refused_on INTEGER,
    PRIMARY KEY (caller, key_digest)
) WITHOUT ROWID;
CREATE INDEX idempotent_answer__caller__refused_on ON idempotent_answer (caller, refused_on) WHERE refused_on IS NOT NULL;
CREATE INDEX idempotent_answer__shows_of ON idempotent_answer (shows_of) WHERE shows_of IS NOT NULL;
CREATE INDEX idempotent_answer__shows_of__started_on ON idempotent_answer (shows_of, started_on) WHERE shows_of IS NOT NULL;
CREATE INDEX idempotent_answer__started_on ON idempotent_answer (started_on);
CREATE TABLE idempotent_claim (
    attempt BLOB NOT NULL PRIMARY KEY,
    held_on INTEGER NOT NULL
)WITHOUT ROWID;
CREATE INDEX idempotent_claim__held_on ON idempotent_claim (held_on);
CREATE TABLE idempotent_erasure (
    store INTEGER NOT NULL PRIMARY KEY,
    erased_on INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE identity_replacement (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    platform_user_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    current_identity_id BLOB NOT NULL,
    replacement_identity_id BLOB NOT NULL,
    replacement_idp_instance_id BLOB NOT NULL,
    replacement_issuer TEXT NOT NULL,
    replacement_subject TEXT NOT NULL,
    replacement_is_user_store BOOLEAN NOT NULL,
    -- as it was last written: that a request expired is seen by its time
    status TEXT NOT NULL,
    requested_by_actor_id BLOB,
    reason TEXT NOT NULL,
    required_approvals INTEGER NOT NULL,
    -- the actors of identity_replacement_approval, as a JSON array
    approved_by_actor_ids TEXT NOT NULL,
    requested_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL,
    current_identity_proven_on INTEGER,
    replacement_identity_proven_on INTEGER,
    approval_satisfied_on INTEGER,
    executed_on INTEGER,
    revocation_completed_on INTEGER,
    revocation_attempts INTEGER NOT NULL,
    policy_fingerprint TEXT NOT NULL,
    -- the platform user while the request is open: at most one is
    open_user_id BLOB,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX identity_replacement__current_identity_id ON identity_replacement (current_identity_id);
CREATE INDEX identity_replacement__expires_on ON identity_replacement (expires_on) WHERE open_user_id IS NOT NULL;
CREATE UNIQUE INDEX identity_replacement__id ON identity_replacement (id);
CREATE UNIQUE INDEX identity_replacement__open_user_id ON identity_replacement (open_user_id);
CREATE INDEX identity_replacement__platform_user_id ON identity_replacement (platform_user_id, rid);
CREATE INDEX identity_replacement__replacement_identity_id ON identity_replacement (replacement_identity_id);
CREATE TABLE identity_replacement_approval (
    replacement_rid INTEGER NOT NULL REFERENCES identity_replacement (rid) ON DELETE CASCADE,
    actor_id BLOB NOT NULL,
    approved_on INTEGER NOT NULL,
    PRIMARY KEY (replacement_rid, actor_id)
) WITHOUT ROWID;
CREATE TABLE identity_revocation (
    replacement_rid INTEGER NOT NULL PRIMARY KEY REFERENCES identity_replacement (rid) ON DELETE CASCADE,
    due_on INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    -- who works on it, and until when nobody else does
    lease BLOB,
    leased_until INTEGER NOT NULL,
    last_error TEXT
);
CREATE INDEX identity_revocation__due_on ON identity_revocation (due_on);
CREATE TABLE idp_instance (
    rid INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL REFERENCES subscription (id),
    idp_type TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    store_name_key TEXT,
    is_active BOOLEAN NOT NULL,
    concurrency_token TEXT NOT NULL,
    idp_type_id BLOB REFERENCES idp_type (id), position INTEGER NOT NULL DEFAULT 0, treat_mfa_factor_claims_as_confirmed BOOLEAN NOT NULL DEFAULT FALSE, auto_create_platform_user BOOLEAN NOT NULL DEFAULT TRUE, is_hidden BOOLEAN NOT NULL DEFAULT FALSE, icon TEXT, last_entry INTEGER NOT NULL DEFAULT 0, settings_confirmed_by BLOB, settings_confirmed_on INTEGER);
CREATE UNIQUE INDEX idp_instance__id ON idp_instance (id);
CREATE INDEX idp_instance__idp_type_id ON idp_instance (idp_type_id);
CREATE UNIQUE INDEX idp_instance__store_name_key ON idp_instance (store_name_key);
CREATE UNIQUE INDEX idp_instance__subscription_id__name_key ON idp_instance (subscription_id, name_key);
CREATE TABLE idp_instance_cert_store (
    idp_instance_rid INTEGER NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    cert_store_rid INTEGER NOT NULL REFERENCES cert_store (rid) ON DELETE CASCADE,
    PRIMARY KEY (idp_instance_rid, cert_store_rid)
) WITHOUT ROWID;
CREATE INDEX idp_instance_cert_store__cert_store_rid ON idp_instance_cert_store (cert_store_rid, idp_instance_rid);
CREATE TABLE idp_instance_client_app (
    idp_instance_rid INTEGER NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    PRIMARY KEY (idp_instance_rid, client_app_rid)
) WITHOUT ROWID;
CREATE INDEX idp_instance_client_app__client_app_rid ON idp_instance_client_app (client_app_rid, idp_instance_rid);
CREATE TABLE idp_instance_metadata (
    rid INTEGER PRIMARY KEY,
    idp_instance_rid INTEGER NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, value TEXT);
CREATE UNIQUE INDEX idp_instance_metadata__idp_instance_rid__key ON idp_instance_metadata (idp_instance_rid, key);
CREATE TABLE idp_instance_mfa_instance (
    idp_instance_rid INTEGER NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    mfa_instance_rid INTEGER NOT NULL REFERENCES mfa_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (idp_instance_rid, mfa_instance_rid)
) WITHOUT ROWID;
CREATE INDEX idp_instance_mfa_instance__mfa_instance_rid ON idp_instance_mfa_instance (mfa_instance_rid, idp_instance_rid);
CREATE TABLE idp_type (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    provider_type TEXT NOT NULL,
    factory_type TEXT NOT NULL,
    is_active BOOLEAN NOT NULL,
    is_seeded BOOLEAN NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX idp_type__id ON idp_type (id);
CREATE UNIQUE INDEX idp_type__name_key ON idp_type (name_key);
CREATE TABLE installation (
    id INTEGER NOT NULL PRIMARY KEY,
    -- as it is configured; none where it follows from the address
    public_url TEXT,
    -- of the database: what a failover, a renamed host and a moved folder leave as it is
    place TEXT NOT NULL,
    -- when the file was made, where its file system tells: new file systems number files alike
    born TEXT,
    -- the place where a copied file was found whole
    checked_place TEXT,
    -- what access tokens and sign-ins under way are bound to; each restore begins another
    era TEXT NOT NULL,
    -- a restore that did not end
    is_restoring BOOLEAN NOT NULL,
    adopted_on INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE ip_address_range (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    lower TEXT NOT NULL,
    upper TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX ip_address_range__id ON ip_address_range (id);
CREATE INDEX ip_address_range__tenant_id ON ip_address_range (tenant_id);
CREATE TABLE job_lease (
    name TEXT NOT NULL PRIMARY KEY,
    holder BLOB,
    until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE key_root (
    id INTEGER NOT NULL PRIMARY KEY,
    sealed BLOB NOT NULL,
    created_on INTEGER NOT NULL
);
CREATE TABLE logout_delivery (
    id BLOB NOT NULL PRIMARY KEY,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    issuing_tenant_id BLOB REFERENCES tenant (id) ON DELETE CASCADE,
    person_id BLOB NOT NULL,
    session_id BLOB,
    queued_on INTEGER NOT NULL,
    due_on INTEGER NOT NULL,
    lease BLOB,
    leased_until INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    dead_on INTEGER
);
CREATE INDEX logout_delivery__client_app_id ON logout_delivery (client_app_id);
CREATE INDEX logout_delivery__due_on ON logout_delivery (due_on);
CREATE INDEX logout_delivery__issuing_tenant_id ON logout_delivery (issuing_tenant_id);
CREATE TABLE mail_message (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    store INTEGER NOT NULL,
    -- the user whom it is about
    person BLOB,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    locale TEXT,
    sealed_data BLOB NOT NULL,
    created_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due_on INTEGER NOT NULL,
    lease BLOB,
    leased_until INTEGER NOT NULL,
    last_error TEXT,
    mfa_instance_id BLOB);
CREATE UNIQUE INDEX mail_message__id ON mail_message (id);
CREATE INDEX mail_message__state__due_on ON mail_message (state, due_on);
CREATE INDEX mail_message__store__person ON mail_message (store, person);
CREATE TABLE mfa_instance (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL REFERENCES subscription (id),
    idp_type_id BLOB NOT NULL REFERENCES idp_type (id),
    idp_type TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    position INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX mfa_instance__id ON mfa_instance (id);
CREATE INDEX mfa_instance__idp_type_id ON mfa_instance (idp_type_id);
CREATE UNIQUE INDEX mfa_instance__subscription_id__name_key ON mfa_instance (subscription_id, name_key);
CREATE TABLE offer_rest (
    rid INTEGER PRIMARY KEY,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    offer TEXT NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE INDEX offer_rest__expires_on ON offer_rest (expires_on);
CREATE UNIQUE INDEX offer_rest__person_id__offer ON offer_rest (person_id, offer);
CREATE TABLE one_time_code (
    rid INTEGER PRIMARY KEY,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    purpose TEXT NOT NULL,
    digest BLOB NOT NULL,
    tries INTEGER NOT NULL,
    sent_on INTEGER NOT NULL,
    -- how many were sent since `counted_from`
    sent INTEGER NOT NULL,
    counted_from INTEGER NOT NULL,
    -- until when the code is right
    valid_until INTEGER NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE INDEX one_time_code__expires_on ON one_time_code (expires_on);
CREATE UNIQUE INDEX one_time_code__person_id__purpose ON one_time_code (person_id, purpose);
CREATE TABLE option_entry (
    owner TEXT NOT NULL,
    name TEXT NOT NULL, form TEXT,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
CREATE TABLE "option_value" (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL REFERENCES subscription (id),
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    data_type TEXT NOT NULL,
    editor_type TEXT NOT NULL,
    has_configuration_error BOOLEAN NOT NULL,
    owner_type TEXT,
    apply_to_idp_instance_id BLOB REFERENCES idp_instance (id) ON DELETE CASCADE,
    apply_to_mfa_instance_id BLOB REFERENCES mfa_instance (id) ON DELETE CASCADE,
    apply_to_tenant_id BLOB REFERENCES tenant (id) ON DELETE CASCADE,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX option_value__apply_to_idp_instance_id__name ON option_value (apply_to_idp_instance_id, name);
CREATE UNIQUE INDEX option_value__apply_to_mfa_instance_id__name ON option_value (apply_to_mfa_instance_id, name);
CREATE UNIQUE INDEX option_value__apply_to_tenant_id__name ON option_value (apply_to_tenant_id, name);
CREATE INDEX option_value__callback_path ON option_value (value) WHERE name = 'CallbackPath';
CREATE UNIQUE INDEX option_value__id ON option_value (id);
CREATE INDEX option_value__subscription_id ON option_value (subscription_id);
CREATE TABLE outbox_event (
    id INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    envelope TEXT NOT NULL,
    customer_id BLOB, subscription_id BLOB, tenant_id BLOB, idp_instance_id BLOB, traceparent TEXT);
CREATE TABLE passkey_ceremony (
    id BLOB NOT NULL PRIMARY KEY,
    store INTEGER NOT NULL,
    user_rid INTEGER REFERENCES user_account (rid) ON DELETE CASCADE,
    is_registration BOOLEAN NOT NULL,
    state BLOB NOT NULL,
    expires_on INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX passkey_ceremony__expires_on ON passkey_ceremony (expires_on);
CREATE INDEX passkey_ceremony__user_rid ON passkey_ceremony (user_rid);
CREATE TABLE passkey_credential (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    user_rid INTEGER NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    credential_id BLOB NOT NULL,
    aaguid BLOB NOT NULL,
    created_on INTEGER NOT NULL,
    last_used_on INTEGER,
    is_backup_eligible BOOLEAN NOT NULL,
    is_backed_up BOOLEAN NOT NULL,
    kept BLOB NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, set_by BLOB);
CREATE UNIQUE INDEX passkey_credential__store__credential_id ON passkey_credential (store, credential_id);
CREATE UNIQUE INDEX passkey_credential__store__id ON passkey_credential (store, id);
CREATE INDEX passkey_credential__user_rid ON passkey_credential (user_rid);
CREATE TABLE passkey_security_event (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    event_type TEXT NOT NULL,
    occurred_on INTEGER NOT NULL,
    actor_id BLOB,
    credential_id BLOB,
    details TEXT, last_entry INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (store, user_id) REFERENCES user_account (store, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX passkey_security_event__store__id ON passkey_security_event (store, id);
CREATE INDEX passkey_security_event__store__user_id__id ON passkey_security_event (store, user_id, id);
CREATE TABLE passkey_trust (
    rid INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    snapshot_number INTEGER,
    snapshot_version TEXT,
    refreshed_on INTEGER,
    next_update_on INTEGER,
    entry_count INTEGER NOT NULL,
    skipped_entry_count INTEGER NOT NULL,
    skipped_certificate_count INTEGER NOT NULL,
    skipped_because TEXT,
    last_refresh_error TEXT,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX passkey_trust__source ON passkey_trust (source);
CREATE TABLE passkey_trust_refresh (
    source TEXT NOT NULL PRIMARY KEY,
    due_on INTEGER NOT NULL,
    failures INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE passkey_trust_snapshot (
    source TEXT NOT NULL PRIMARY KEY,
    snapshot_number INTEGER NOT NULL,
    content BLOB NOT NULL
);
CREATE TABLE password_reset (
    user_rid INTEGER NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    expires_on INTEGER NOT NULL,
    made_by BLOB) WITHOUT ROWID;
CREATE TABLE password_reset_mail (
    user_rid INTEGER NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    sent_on INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE platform_profile (
    rid INTEGER PRIMARY KEY,
    application_user_rid INTEGER NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX platform_profile__application_user_rid__key ON platform_profile (application_user_rid, key);
CREATE TABLE process (
    id BLOB NOT NULL PRIMARY KEY,
    version TEXT NOT NULL,
    schema INTEGER NOT NULL,
    seen_on INTEGER NOT NULL,
    public_url TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE questionnaire_mark (
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    item_id BLOB NOT NULL REFERENCES user_questionnaire_item (id) ON DELETE CASCADE,
    shown_on INTEGER NOT NULL,
    PRIMARY KEY (person_id, item_id)
);
CREATE INDEX questionnaire_mark__item_id ON questionnaire_mark (item_id);
CREATE TABLE recovery_code (
    digest BLOB NOT NULL PRIMARY KEY,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    second_factor_id BLOB NOT NULL REFERENCES second_factor (id) ON DELETE CASCADE
);
CREATE INDEX recovery_code__person_id ON recovery_code (person_id);
CREATE INDEX recovery_code__second_factor_id ON recovery_code (second_factor_id);
CREATE TABLE recovery_transaction (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    status TEXT NOT NULL,
    method TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL,
    completed_on INTEGER,
    requested_by_actor_id BLOB,
    approved_by_actor_id BLOB,
    -- the user while the transaction is open: at most one is
    open_user_id BLOB, last_entry INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (store, user_id) REFERENCES user_account (store, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX recovery_transaction__store__id ON recovery_transaction (store, id);
CREATE UNIQUE INDEX recovery_transaction__store__open_user_id ON recovery_transaction (store, open_user_id);
CREATE INDEX recovery_transaction__store__user_id ON recovery_transaction (store, user_id);
CREATE TABLE reference_token (
    digest BLOB NOT NULL,
    claims TEXT NOT NULL,
    expires_on INTEGER NOT NULL,
    PRIMARY KEY (digest)
) WITHOUT ROWID;
CREATE INDEX reference_token__expires_on ON reference_token (expires_on);
CREATE TABLE remembered_device (
    digest BLOB NOT NULL PRIMARY KEY,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    expires_on INTEGER NOT NULL
);
CREATE INDEX remembered_device__expires_on ON remembered_device (expires_on);
CREATE INDEX remembered_device__person_id ON remembered_device (person_id);
CREATE INDEX remembered_device__tenant_id ON remembered_device (tenant_id);
CREATE TABLE removed_password (
    user_rid INTEGER NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    changed_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL,
    set_by BLOB) WITHOUT ROWID;
CREATE INDEX removed_password__expires_on ON removed_password (expires_on);
CREATE TABLE resource_owner (
    key TEXT NOT NULL PRIMARY KEY,
    subscription_id BLOB NOT NULL REFERENCES subscription (id) ON DELETE CASCADE,
    normal_key TEXT);
CREATE INDEX resource_owner__normal_key ON resource_owner (normal_key);
CREATE TABLE retired_id (
    store INTEGER NOT NULL,
    resource TEXT NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (store, resource, id)
) WITHOUT ROWID;
CREATE TABLE revoked_token (
    jti TEXT NOT NULL,
    expires_on INTEGER NOT NULL,
    PRIMARY KEY (jti)
) WITHOUT ROWID;
CREATE INDEX revoked_token__expires_on ON revoked_token (expires_on);
CREATE TABLE role_assignment (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    principal_type TEXT NOT NULL,
    principal_id BLOB NOT NULL,
    role_type TEXT NOT NULL,
    apply_to_customer_id BLOB REFERENCES customer (id) ON DELETE CASCADE,
    apply_to_subscription_id BLOB REFERENCES subscription (id) ON DELETE CASCADE,
    apply_to_tenant_id BLOB REFERENCES tenant (id) ON DELETE CASCADE,
    apply_to_idp_instance_id BLOB REFERENCES idp_instance (id) ON DELETE CASCADE,
    target_key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE INDEX role_assignment__apply_to_customer_id ON role_assignment (apply_to_customer_id);
CREATE INDEX role_assignment__apply_to_idp_instance_id ON role_assignment (apply_to_idp_instance_id);
CREATE INDEX role_assignment__apply_to_subscription_id ON role_assignment (apply_to_subscription_id);
CREATE INDEX role_assignment__apply_to_tenant_id ON role_assignment (apply_to_tenant_id);
CREATE UNIQUE INDEX role_assignment__id ON role_assignment (id);
CREATE UNIQUE INDEX role_assignment__principal_id__role_type__target_key ON role_assignment (principal_id, role_type, target_key);
CREATE TABLE schema_floor (
    floor INTEGER NOT NULL PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE schema_migration (version BIGINT NOT NULL PRIMARY KEY, checksum TEXT);
CREATE TABLE scim_instance_token (
    idp_instance_id BLOB NOT NULL PRIMARY KEY REFERENCES idp_instance (id) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    stopped_on INTEGER,
    token_id BLOB) WITHOUT ROWID;
CREATE UNIQUE INDEX scim_instance_token__digest ON scim_instance_token (digest);
CREATE TABLE scim_removal (
    rid INTEGER PRIMARY KEY AUTOINCREMENT,
    token_id BLOB NOT NULL,
    removed_on INTEGER NOT NULL
);
CREATE INDEX scim_removal__token_id__removed_on ON scim_removal (token_id, removed_on);
CREATE TABLE scim_token (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    hint TEXT NOT NULL,
    rights TEXT NOT NULL,
    reach TEXT NOT NULL,
    successor_of BLOB,
    confirms_email BOOLEAN NOT NULL,
    networks TEXT NOT NULL,
    expires_on INTEGER NOT NULL,
    is_active BOOLEAN NOT NULL,
    stopped_on INTEGER,
    digest BLOB NOT NULL,
    lineage BLOB NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX scim_token__digest ON scim_token (digest);
CREATE UNIQUE INDEX scim_token__id ON scim_token (id);
CREATE INDEX scim_token__store ON scim_token (store);
CREATE TABLE scim_token_use (
    token_id BLOB NOT NULL PRIMARY KEY,
    used_on INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE second_factor (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    mfa_instance_id BLOB NOT NULL REFERENCES mfa_instance (id) ON DELETE CASCADE,
    sealed BLOB NOT NULL,
    last_step INTEGER NOT NULL,
    enrolled_on INTEGER NOT NULL,
    used_on INTEGER
);
CREATE UNIQUE INDEX second_factor__id ON second_factor (id);
CREATE INDEX second_factor__mfa_instance_id ON second_factor (mfa_instance_id);
CREATE UNIQUE INDEX second_factor__person_id__mfa_instance_id ON second_factor (person_id, mfa_instance_id);
CREATE TABLE security_contact (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    user_rid INTEGER NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    id BLOB NOT NULL,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    value_key TEXT NOT NULL,
    is_verified BOOLEAN NOT NULL,
    verified_on INTEGER,
    created_on INTEGER NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, set_by BLOB);
CREATE UNIQUE INDEX security_contact__store__id ON security_contact (store, id);
CREATE UNIQUE INDEX security_contact__user_rid__value_key ON security_contact (user_rid, value_key);
CREATE TABLE security_contact_code (
    contact_rid INTEGER NOT NULL PRIMARY KEY REFERENCES security_contact (rid) ON DELETE CASCADE,
    digest BLOB NOT NULL,
    expires_on INTEGER NOT NULL,
    attempts INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE security_epoch (value INTEGER NOT NULL);
CREATE TABLE sign_in_attempt (
    digest BLOB NOT NULL PRIMARY KEY,
    record_id BLOB NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE INDEX sign_in_attempt__expires_on ON sign_in_attempt (expires_on);
CREATE TABLE sign_in_consent (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    scope TEXT NOT NULL,
    resources TEXT NOT NULL,
    source TEXT NOT NULL,
    given_on INTEGER,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0,
    platform_given_on INTEGER);
CREATE UNIQUE INDEX sign_in_consent__client_app_id__person_id ON sign_in_consent (client_app_id, person_id);
CREATE UNIQUE INDEX sign_in_consent__id ON sign_in_consent (id);
CREATE INDEX sign_in_consent__person_id ON sign_in_consent (person_id, id);
CREATE TABLE sign_in_cutoff (
    person_id BLOB NOT NULL PRIMARY KEY REFERENCES application_user (id) ON DELETE CASCADE,
    proven_until INTEGER NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE INDEX sign_in_cutoff__expires_on ON sign_in_cutoff (expires_on);
CREATE TABLE sign_in_flow (
    id TEXT NOT NULL PRIMARY KEY,
    sealed BLOB NOT NULL,
    expires_on INTEGER NOT NULL
);
CREATE INDEX sign_in_flow__expires_on ON sign_in_flow (expires_on);
CREATE TABLE sign_in_grant (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    -- the session that it ends with, unless it is for when the person is away
    session_id BLOB,
    -- the tenant whose issuer was asked; none is the installation
    issuing_tenant_id BLOB,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    client_app_id BLOB NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    -- of the last first factor
    idp_instance_id BLOB NOT NULL,
    scope TEXT NOT NULL,
    -- whether it has `offline_access`, and so a refresh token
    is_offline BOOLEAN NOT NULL,
    -- of the refresh token: the one of before is good for a moment more
    generation INTEGER NOT NULL,
    rotated_on INTEGER,
    -- of the keys of its refresh tokens
    salt BLOB NOT NULL,
    sealed BLOB NOT NULL,
    started_on INTEGER NOT NULL,
    used_on INTEGER NOT NULL,
    -- when its last token ends
    expires_on INTEGER NOT NULL,
    ended_on INTEGER,
    proven_on INTEGER);
CREATE INDEX sign_in_grant__client_app_id ON sign_in_grant (client_app_id, id);
CREATE INDEX sign_in_grant__expires_on ON sign_in_grant (expires_on);
CREATE UNIQUE INDEX sign_in_grant__id ON sign_in_grant (id);
CREATE INDEX sign_in_grant__person_id ON sign_in_grant (person_id, id);
CREATE INDEX sign_in_grant__session_id ON sign_in_grant (session_id);
CREATE INDEX sign_in_grant__tenant_id ON sign_in_grant (tenant_id, id);
CREATE TABLE sign_in_record (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    occurred_on INTEGER NOT NULL,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    client_app_id BLOB,
    idp_instance_id BLOB,
    person_id BLOB NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    methods TEXT NOT NULL,
    acr TEXT,
    session_id BLOB,
    address TEXT,
    user_agent TEXT,
    -- by the tenant's option SignInRecordRetention as it was
    expires_on INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 1, last_attempt_on INTEGER);
CREATE INDEX sign_in_record__expires_on ON sign_in_record (expires_on);
CREATE UNIQUE INDEX sign_in_record__id ON sign_in_record (id);
CREATE INDEX sign_in_record__person_id ON sign_in_record (person_id, id);
CREATE INDEX sign_in_record__tenant_id ON sign_in_record (tenant_id, id);
CREATE TABLE sign_in_session (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    browser BLOB NOT NULL,
    former_browser BLOB,
    former_until INTEGER,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    -- of the last first factor
    idp_instance_id BLOB NOT NULL,
    proofs TEXT NOT NULL,
    -- whether it outlives the browser's own session
    is_kept BOOLEAN NOT NULL,
    started_on INTEGER NOT NULL,
    used_on INTEGER NOT NULL,
    expires_on INTEGER NOT NULL,
    ended_on INTEGER,
    provider_claims BLOB, proven_on INTEGER);
CREATE INDEX sign_in_session__browser ON sign_in_session (browser);
CREATE INDEX sign_in_session__expires_on ON sign_in_session (expires_on);
CREATE INDEX sign_in_session__former_browser ON sign_in_session (former_browser);
CREATE UNIQUE INDEX sign_in_session__id ON sign_in_session (id);
CREATE INDEX sign_in_session__person_id ON sign_in_session (person_id, id);
CREATE INDEX sign_in_session__tenant_id ON sign_in_session (tenant_id, id);
CREATE TABLE signing_key (
    rid INTEGER PRIMARY KEY,
    purpose TEXT NOT NULL,
    key_id TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    public_key BLOB NOT NULL,
    private_key BLOB NOT NULL,
    created_on INTEGER NOT NULL
);
CREATE UNIQUE INDEX signing_key__key_id ON signing_key (key_id);
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE subscription (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    customer_id BLOB NOT NULL REFERENCES customer (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    status TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX subscription__customer_id__name_key ON subscription (customer_id, name_key);
CREATE UNIQUE INDEX subscription__id ON subscription (id);
CREATE TABLE temporary_access_pass (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    id BLOB NOT NULL,
    user_id BLOB NOT NULL,
    created_on INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    expires_on INTEGER NOT NULL,
    is_one_time_use BOOLEAN NOT NULL,
    status TEXT NOT NULL,
    used_on INTEGER,
    created_by_actor_id BLOB,
    digest BLOB NOT NULL, last_entry INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (store, user_id) REFERENCES user_account (store, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX temporary_access_pass__store__id ON temporary_access_pass (store, id);
CREATE INDEX temporary_access_pass__store__user_id ON temporary_access_pass (store, user_id);
CREATE TABLE tenant (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    subscription_id BLOB NOT NULL REFERENCES subscription (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT,
    is_active BOOLEAN NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX tenant__id ON tenant (id);
CREATE UNIQUE INDEX tenant__subscription_id__name_key ON tenant (subscription_id, name_key);
CREATE TABLE tenant_client_app (
    tenant_rid INTEGER NOT NULL REFERENCES tenant (rid) ON DELETE CASCADE,
    client_app_rid INTEGER NOT NULL REFERENCES client_app (rid) ON DELETE CASCADE,
    PRIMARY KEY (tenant_rid, client_app_rid)
) WITHOUT ROWID;
CREATE INDEX tenant_client_app__client_app_rid ON tenant_client_app (client_app_rid, tenant_rid);
CREATE TABLE tenant_idp_instance (
    tenant_rid INTEGER NOT NULL REFERENCES tenant (rid) ON DELETE CASCADE,
    idp_instance_rid INTEGER NOT NULL REFERENCES idp_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (tenant_rid, idp_instance_rid)
) WITHOUT ROWID;
CREATE INDEX tenant_idp_instance__idp_instance_rid ON tenant_idp_instance (idp_instance_rid, tenant_rid);
CREATE TABLE tenant_mfa_instance (
    tenant_rid INTEGER NOT NULL REFERENCES tenant (rid) ON DELETE CASCADE,
    mfa_instance_rid INTEGER NOT NULL REFERENCES mfa_instance (rid) ON DELETE CASCADE,
    PRIMARY KEY (tenant_rid, mfa_instance_rid)
) WITHOUT ROWID;
CREATE INDEX tenant_mfa_instance__mfa_instance_rid ON tenant_mfa_instance (mfa_instance_rid, tenant_rid);
CREATE TABLE terms_acceptance (
    person_id BLOB NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    version TEXT NOT NULL,
    accepted_on INTEGER NOT NULL,
    PRIMARY KEY (person_id, tenant_id)
);
CREATE INDEX terms_acceptance__tenant_id ON terms_acceptance (tenant_id);
CREATE TABLE used_proof (
    digest BLOB NOT NULL,
    expires_on INTEGER NOT NULL,
    PRIMARY KEY (digest)
) WITHOUT ROWID;
CREATE INDEX used_proof__expires_on ON used_proof (expires_on);
CREATE TABLE user_account (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL REFERENCES idp_instance (rid),
    id BLOB NOT NULL,
    external_unique_identifier TEXT,
    login_name TEXT NOT NULL,
    login_name_key TEXT NOT NULL,
    first_name TEXT,
    first_name_key TEXT,
    last_name TEXT,
    last_name_key TEXT,
    email_address TEXT,
    email_address_key TEXT,
    email_address_confirmed BOOLEAN NOT NULL,
    phone_number TEXT,
    phone_number_confirmed BOOLEAN NOT NULL,
    middle_name TEXT,
    nickname TEXT,
    profile TEXT,
    picture TEXT,
    website TEXT,
    gender TEXT,
    birthdate TEXT,
    zoneinfo TEXT,
    locale TEXT,
    user_valid_from INTEGER,
    user_valid_to INTEGER,
    is_user_active BOOLEAN NOT NULL,
    is_user_lock_enabled BOOLEAN NOT NULL,
    is_user_locked BOOLEAN NOT NULL,
    failed_user_login_attempts INTEGER NOT NULL,
    failed_temporary_lock_attempts INTEGER NOT NULL,
    locked_until INTEGER,
    password_never_expires BOOLEAN NOT NULL,
    can_change_password_on_expiration BOOLEAN NOT NULL,
    password_expiration INTEGER,
    is_initial_password BOOLEAN NOT NULL,
    is_password_change_required BOOLEAN NOT NULL,
    quarantined_on INTEGER,
    concurrency_token TEXT NOT NULL,
    audit_key BLOB, throttle_step INTEGER NOT NULL DEFAULT 0, throttled_until INTEGER, closing_attempt BLOB, closing_since INTEGER, last_entry INTEGER NOT NULL DEFAULT 0, scim_owner BLOB, scim_extra TEXT, address_set_by BLOB);
CREATE INDEX user_account__scim_owner__id ON user_account (scim_owner, id, store, quarantined_on) WHERE scim_owner IS NOT NULL;
CREATE INDEX user_account__store ON user_account (store, rid);
CREATE INDEX user_account__store__email_address_key__id ON user_account (store, email_address_key, id);
CREATE UNIQUE INDEX user_account__store__external_unique_identifier__scim_owner ON user_account (store, external_unique_identifier, scim_owner) WHERE external_unique_identifier IS NOT NULL;
CREATE INDEX user_account__store__first_name_key__last_name_key__id ON user_account (store, first_name_key, last_name_key, id);
CREATE UNIQUE INDEX user_account__store__id ON user_account (store, id);
CREATE INDEX user_account__store__inactive ON user_account (store, id) WHERE is_user_active = FALSE;
CREATE INDEX user_account__store__last_name_key__first_name_key__id ON user_account (store, last_name_key, first_name_key, id);
CREATE INDEX user_account__store__last_name_key__id ON user_account (store, last_name_key, id);
CREATE INDEX user_account__store__locked ON user_account (store, id) WHERE is_user_locked = TRUE;
CREATE INDEX user_account__store__locked_until ON user_account (store, id) WHERE locked_until IS NOT NULL;
CREATE UNIQUE INDEX user_account__store__login_name_key ON user_account (store, login_name_key);
CREATE INDEX user_account__store__quarantined_on ON user_account (store, quarantined_on) WHERE quarantined_on IS NOT NULL;
CREATE TABLE user_group (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL REFERENCES idp_instance (rid),
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, scim_owner BLOB, external_unique_identifier TEXT);
CREATE INDEX user_group__scim_owner__id ON user_group (scim_owner, id, store) WHERE scim_owner IS NOT NULL;
CREATE UNIQUE INDEX user_group__store__external_unique_identifier__scim_owner ON user_group (store, external_unique_identifier, scim_owner) WHERE external_unique_identifier IS NOT NULL;
CREATE UNIQUE INDEX user_group__store__id ON user_group (store, id);
CREATE UNIQUE INDEX user_group__store__name_key ON user_group (store, name_key);
CREATE TABLE user_image (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    user_rid INTEGER NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    id BLOB NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX user_image__user_rid ON user_image (user_rid);
CREATE TABLE user_image_content (
    user_rid INTEGER NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    content BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE user_password (
    user_rid INTEGER NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    changed_on INTEGER NOT NULL,
    set_by BLOB) WITHOUT ROWID;
CREATE TABLE user_password_history (
    user_rid INTEGER NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    changed_on INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (user_rid, changed_on, hash)
) WITHOUT ROWID;
CREATE TABLE user_profile (
    rid INTEGER PRIMARY KEY,
    store INTEGER NOT NULL,
    user_rid INTEGER NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    key TEXT NOT NULL,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0, value TEXT);
CREATE UNIQUE INDEX user_profile__user_rid__key ON user_profile (user_rid, key);
CREATE TABLE user_questionnaire_item (
    rid INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    tenant_id BLOB NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    position INTEGER NOT NULL,
    is_required BOOLEAN NOT NULL,
    min_length INTEGER,
    max_length INTEGER,
    validation_format TEXT NOT NULL,
    validation_pattern TEXT,
    concurrency_token TEXT NOT NULL,
    last_entry INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX user_questionnaire_item__id ON user_questionnaire_item (id);
CREATE UNIQUE INDEX user_questionnaire_item__tenant_id__key ON user_questionnaire_item (tenant_id, key);
CREATE TABLE write_gate (id INTEGER NOT NULL PRIMARY KEY);
