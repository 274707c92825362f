-- Few are locked for a while among very many: they are found without looking at the others.
CREATE INDEX user_account__store__locked_until ON user_account (store, id) WHERE locked_until IS NOT NULL;
