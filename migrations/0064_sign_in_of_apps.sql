-- How a client app signs people in. Client apps of before keep what they had; the program writes its own defaults for new ones.
ALTER TABLE client_app ADD COLUMN pkce {text} NOT NULL DEFAULT 'AsTenant';
ALTER TABLE client_app ADD COLUMN id_token_claims {text} NOT NULL DEFAULT 'Minimal';

-- The default of PkceRequired becomes false: tenants that relied on it keep true.
INSERT INTO option_value (
    id, subscription_id, name, value, data_type, editor_type, has_configuration_error, owner_type, apply_to_tenant_id, concurrency_token
)
SELECT
{on_sqlite}    randomblob(16),
{on_postgres}    gen_random_uuid(),
    t.subscription_id, 'PkceRequired', 'true', 'Boolean', 'Checkbox', FALSE, 'Tenant', t.id, 'migrated'
FROM tenant t
WHERE NOT EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_tenant_id = t.id AND o.name = 'PkceRequired');
UPDATE option_value SET value = 'true' WHERE name = 'PkceRequired' AND value = '' AND apply_to_tenant_id IS NOT NULL;
