-- Values of metadata and profiles: null is none, which is not empty text. PostgreSQL does it without touching
-- a row, while others read and write.
{on_postgres} ALTER TABLE group_metadata ALTER COLUMN value DROP NOT NULL;
{on_postgres} ALTER TABLE user_profile ALTER COLUMN value DROP NOT NULL;
{on_postgres} ALTER TABLE idp_instance_metadata ALTER COLUMN value DROP NOT NULL;
{on_postgres} ALTER TABLE client_app_metadata ALTER COLUMN value DROP NOT NULL;
{on_sqlite} ALTER TABLE group_metadata ADD COLUMN value_or_null {text};
{on_sqlite} UPDATE group_metadata SET value_or_null = value;
{on_sqlite} ALTER TABLE group_metadata DROP COLUMN value;
{on_sqlite} ALTER TABLE group_metadata RENAME COLUMN value_or_null TO value;
{on_sqlite} ALTER TABLE user_profile ADD COLUMN value_or_null {text};
{on_sqlite} UPDATE user_profile SET value_or_null = value;
{on_sqlite} ALTER TABLE user_profile DROP COLUMN value;
{on_sqlite} ALTER TABLE user_profile RENAME COLUMN value_or_null TO value;
{on_sqlite} ALTER TABLE idp_instance_metadata ADD COLUMN value_or_null {text};
{on_sqlite} UPDATE idp_instance_metadata SET value_or_null = value;
{on_sqlite} ALTER TABLE idp_instance_metadata DROP COLUMN value;
{on_sqlite} ALTER TABLE idp_instance_metadata RENAME COLUMN value_or_null TO value;
{on_sqlite} ALTER TABLE client_app_metadata ADD COLUMN value_or_null {text};
{on_sqlite} UPDATE client_app_metadata SET value_or_null = value;
{on_sqlite} ALTER TABLE client_app_metadata DROP COLUMN value;
{on_sqlite} ALTER TABLE client_app_metadata RENAME COLUMN value_or_null TO value;
