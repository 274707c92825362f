-- People by first name, by first and last name, and by last and first name. Where the other name is missing, both engines
-- have such a person first, as a search asks for it.
{on_sqlite} CREATE INDEX user_account__store__first_name_key__last_name_key__id ON user_account (store, first_name_key, last_name_key, id);
{on_sqlite} CREATE INDEX user_account__store__last_name_key__first_name_key__id ON user_account (store, last_name_key, first_name_key, id);
{on_postgres} CREATE INDEX user_account__store__first_name_key__last_name_key__id ON user_account (store, first_name_key, last_name_key NULLS FIRST, id);
{on_postgres} CREATE INDEX user_account__store__last_name_key__first_name_key__id ON user_account (store, last_name_key, first_name_key NULLS FIRST, id);
