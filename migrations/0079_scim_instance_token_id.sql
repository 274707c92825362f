-- The id of the token of an instance, by which the audit trail names it: the option ScimTokenId can be set by hand.
ALTER TABLE scim_instance_token ADD COLUMN token_id {id};
