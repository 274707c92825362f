-- The options of a second factor go with it, as those of an instance do. SQLite adds no reference to a
-- column that is there, so the table is made anew.
CREATE TABLE option_value_new (
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
    apply_to_mfa_instance_id {id} REFERENCES mfa_instance (id) ON DELETE CASCADE,
    apply_to_tenant_id {id} REFERENCES tenant (id) ON DELETE CASCADE,
    concurrency_token {text} NOT NULL
);
INSERT INTO option_value_new (
    id, subscription_id, name, value, data_type, editor_type, has_configuration_error, owner_type,
    apply_to_idp_instance_id, apply_to_mfa_instance_id, apply_to_tenant_id, concurrency_token)
SELECT id, subscription_id, name, value, data_type, editor_type, has_configuration_error, owner_type,
    apply_to_idp_instance_id, apply_to_mfa_instance_id, apply_to_tenant_id, concurrency_token
FROM option_value WHERE apply_to_mfa_instance_id IS NULL
    OR apply_to_mfa_instance_id IN (SELECT id FROM mfa_instance) ORDER BY rid;
DROP TABLE option_value;
ALTER TABLE option_value_new RENAME TO option_value;
CREATE UNIQUE INDEX option_value__id ON option_value (id);
CREATE UNIQUE INDEX option_value__apply_to_idp_instance_id__name ON option_value (apply_to_idp_instance_id, name);
CREATE UNIQUE INDEX option_value__apply_to_mfa_instance_id__name ON option_value (apply_to_mfa_instance_id, name);
CREATE UNIQUE INDEX option_value__apply_to_tenant_id__name ON option_value (apply_to_tenant_id, name);
CREATE INDEX option_value__subscription_id ON option_value (subscription_id);
