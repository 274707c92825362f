-- That an entry is somebody's is checked at the commit: else on PostgreSQL all who create users with entries read the end of
-- the index to which all of them write, and repeat.
{on_postgres}ALTER TABLE user_profile ALTER CONSTRAINT user_profile_user_rid_fkey DEFERRABLE INITIALLY DEFERRED;
-- Whose tokens made a user or a group (SCIM), what the directory calls it, and what it tells beyond the fields.
ALTER TABLE user_account ADD COLUMN scim_owner {id};
ALTER TABLE user_account ADD COLUMN scim_extra {text};
ALTER TABLE user_group ADD COLUMN scim_owner {id};
ALTER TABLE user_group ADD COLUMN external_unique_identifier {text};
CREATE UNIQUE INDEX user_account__store__external_unique_identifier__scim_owner ON user_account (store, external_unique_identifier, scim_owner) WHERE external_unique_identifier IS NOT NULL;
CREATE UNIQUE INDEX user_group__store__external_unique_identifier__scim_owner ON user_group (store, external_unique_identifier, scim_owner) WHERE external_unique_identifier IS NOT NULL;
-- Pages of what a directory made come in the order of ids, and are counted from the index alone. It does not begin with
-- the store: SQLite would take it for look-ups by id or address, too, and read all that the directory made.
CREATE INDEX user_account__scim_owner__id ON user_account (scim_owner, id, store, quarantined_on) WHERE scim_owner IS NOT NULL;
CREATE INDEX user_group__scim_owner__id ON user_group (scim_owner, id, store) WHERE scim_owner IS NOT NULL;

-- The tokens of directories that provision a user store.
CREATE TABLE scim_token (
    rid {row},
    store {int} NOT NULL,
    id {id} NOT NULL,
    name {text} NOT NULL,
    hint {text} NOT NULL,
    rights {text} NOT NULL,
    reach {text} NOT NULL,
    successor_of {id},
    confirms_email {bool} NOT NULL,
    networks {text} NOT NULL,
    expires_on {time} NOT NULL,
    is_active {bool} NOT NULL,
    stopped_on {time},
    digest {bytes} NOT NULL,
    lineage {id} NOT NULL,
    concurrency_token {text} NOT NULL,
    last_entry {int} NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX scim_token__id ON scim_token (id);
CREATE UNIQUE INDEX scim_token__digest ON scim_token (digest);
CREATE INDEX scim_token__store ON scim_token (store);

-- The tokens of identity provider instances, each as an option shows it, by its digest.
CREATE TABLE scim_instance_token (
    idp_instance_id {id} NOT NULL PRIMARY KEY REFERENCES idp_instance (id) ON DELETE CASCADE,
    digest {bytes} NOT NULL,
    stopped_on {time}
) {clustered};
CREATE UNIQUE INDEX scim_instance_token__digest ON scim_instance_token (digest);

-- When tokens were last used, to the hour.
CREATE TABLE scim_token_use (
    token_id {id} NOT NULL PRIMARY KEY,
    used_on {time} NOT NULL
) {clustered};

-- Users whom a token deactivated or deleted in the last hour: of too many it is stopped.
CREATE TABLE scim_removal (
    rid {counted},
    token_id {id} NOT NULL,
    removed_on {time} NOT NULL
);
CREATE INDEX scim_removal__token_id__removed_on ON scim_removal (token_id, removed_on);

-- What a directory tells of persons and groups of an identity provider instance.
ALTER TABLE application_user ADD COLUMN external_id {text};
ALTER TABLE application_user ADD COLUMN user_name {text};
ALTER TABLE application_user ADD COLUMN user_name_key {text};
ALTER TABLE application_user ADD COLUMN is_active {bool} NOT NULL DEFAULT TRUE;
CREATE UNIQUE INDEX application_user__idp_instance_id__user_name_key ON application_user (idp_instance_id, user_name_key) WHERE user_name_key IS NOT NULL;
CREATE UNIQUE INDEX application_user__idp_instance_id__external_id ON application_user (idp_instance_id, external_id) WHERE external_id IS NOT NULL;
ALTER TABLE application_group ADD COLUMN external_id {text};
ALTER TABLE application_group ADD COLUMN provisioned_name {text};
ALTER TABLE application_group ADD COLUMN provisioned_name_key {text};
CREATE UNIQUE INDEX application_group__idp_instance_id__provisioned_name_key ON application_group (idp_instance_id, provisioned_name_key) WHERE provisioned_name_key IS NOT NULL;
CREATE UNIQUE INDEX application_group__idp_instance_id__external_id ON application_group (idp_instance_id, external_id) WHERE external_id IS NOT NULL;

-- Who is in a group of an identity provider instance, as its directory tells.
CREATE TABLE application_group_member (
    application_group_rid {int} NOT NULL REFERENCES application_group (rid) ON DELETE CASCADE,
    application_user_rid {int} NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    PRIMARY KEY (application_group_rid, application_user_rid)
) {clustered};
CREATE INDEX application_group_member__application_user_rid ON application_group_member (application_user_rid);
