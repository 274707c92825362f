-- The subscription whose client apps a resource belongs to: of the one that named it first, for as long as
-- one of its client apps names it. A row that no resource stands behind any more is free to be taken over.
CREATE TABLE resource_owner (
    key {text} NOT NULL PRIMARY KEY,
    subscription_id {id} NOT NULL REFERENCES subscription (id) ON DELETE CASCADE
);
INSERT INTO resource_owner (key, subscription_id)
    SELECT r.key, a.subscription_id FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id
    WHERE r.rid = (SELECT min(f.rid) FROM client_app_resource f WHERE f.key = r.key)
    AND r.key NOT IN ('PlatformManagementService', 'PlatformUserStoreService');
