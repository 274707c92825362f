-- Values of metadata and profiles: null is none, which is not empty text.
ALTER TABLE group_metadata ADD COLUMN value_or_null {text};
UPDATE group_metadata SET value_or_null = value;
ALTER TABLE group_metadata DROP COLUMN value;
ALTER TABLE group_metadata RENAME COLUMN value_or_null TO value;
ALTER TABLE user_profile ADD COLUMN value_or_null {text};
UPDATE user_profile SET value_or_null = value;
ALTER TABLE user_profile DROP COLUMN value;
ALTER TABLE user_profile RENAME COLUMN value_or_null TO value;
ALTER TABLE idp_instance_metadata ADD COLUMN value_or_null {text};
UPDATE idp_instance_metadata SET value_or_null = value;
ALTER TABLE idp_instance_metadata DROP COLUMN value;
ALTER TABLE idp_instance_metadata RENAME COLUMN value_or_null TO value;
ALTER TABLE client_app_metadata ADD COLUMN value_or_null {text};
UPDATE client_app_metadata SET value_or_null = value;
ALTER TABLE client_app_metadata DROP COLUMN value;
ALTER TABLE client_app_metadata RENAME COLUMN value_or_null TO value;
