-- What an external identity provider told of the person when the session began, sealed.
ALTER TABLE sign_in_session ADD COLUMN provider_claims {bytes};
