-- Few are locked or inactive among very many: they are found without looking at the others.
CREATE INDEX user_account__store__locked ON user_account (store, id) WHERE is_user_locked = TRUE;
CREATE INDEX user_account__store__inactive ON user_account (store, id) WHERE is_user_active = FALSE;
