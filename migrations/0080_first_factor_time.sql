-- When the last first factor of a session or a grant was proven to this server. The platform does not accept one from before the
-- settings of its external instance were reviewed.
ALTER TABLE sign_in_session ADD COLUMN proven_on {time};
ALTER TABLE sign_in_grant ADD COLUMN proven_on {time};
