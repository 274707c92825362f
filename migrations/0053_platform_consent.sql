-- When the person said on a page that the client app may have the person's rights at the platform. No administrator says that.
ALTER TABLE sign_in_consent ADD COLUMN platform_given_on {time};

-- Whom a directory wanted to deactivate or delete although the person carries a role: told at most once a day.
CREATE TABLE directory_refusal (
    idp_instance_id {id} NOT NULL REFERENCES idp_instance (id) ON DELETE CASCADE,
    subject_id {id} NOT NULL,
    told_on {time} NOT NULL,
    PRIMARY KEY (idp_instance_id, subject_id)
) {clustered};
