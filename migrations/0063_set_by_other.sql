-- Who last set what lets somebody in as a person, if that was neither the person nor the server itself: so that whoever grants a
-- role learns what others set before. An earlier release that runs beside this one leaves these as they are.
ALTER TABLE user_password ADD COLUMN set_by {id};
ALTER TABLE removed_password ADD COLUMN set_by {id};
-- of the login name, the e-mail address and the telephone number
ALTER TABLE user_account ADD COLUMN address_set_by {id};
ALTER TABLE passkey_credential ADD COLUMN set_by {id};
ALTER TABLE security_contact ADD COLUMN set_by {id};

-- The id by which the list of refused removals shows one. Those of an earlier release have none, and are shown by the person's.
ALTER TABLE directory_refusal ADD COLUMN id {id};
