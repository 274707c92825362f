-- What an instance or a tenant is set to. A secret value is encrypted under the master key.
CREATE TABLE option_value (
    rid {row},
    id {id} NOT NULL,
    subscription_id {id} NOT NULL REFERENCES subscription (id),
    name {text} NOT NULL,
    value {text} NOT NULL,
    data_type {text} NOT NULL,
    editor_type {text} NOT NULL,
    has_configuration_error {bool} NOT NULL,
    owner_type {text},
    apply_to_idp_instance_id {id} REFERENCES idp_instance (id) ON DELETE CASCADE,
    apply_to_mfa_instance_id {id},
    apply_to_tenant_id {id} REFERENCES tenant (id) ON DELETE CASCADE,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX option_value__id ON option_value (id);
CREATE UNIQUE INDEX option_value__apply_to_idp_instance_id__name ON option_value (apply_to_idp_instance_id, name);
CREATE UNIQUE INDEX option_value__apply_to_mfa_instance_id__name ON option_value (apply_to_mfa_instance_id, name);
CREATE UNIQUE INDEX option_value__apply_to_tenant_id__name ON option_value (apply_to_tenant_id, name);
CREATE INDEX option_value__subscription_id ON option_value (subscription_id);

-- The entries of the catalogue that owners have been given rows for: one that a release adds gets
-- its rows at the next start, one that was deleted does not come back.
CREATE TABLE option_entry (
    owner {text} NOT NULL,
    name {text} NOT NULL,
    PRIMARY KEY (owner, name)
) {clustered};
