-- The questionnaire items that a person was shown in a sign-in.
CREATE TABLE questionnaire_mark (
    person_id {id} NOT NULL REFERENCES application_user (id) ON DELETE CASCADE,
    item_id {id} NOT NULL REFERENCES user_questionnaire_item (id) ON DELETE CASCADE,
    shown_on {time} NOT NULL,
    PRIMARY KEY (person_id, item_id)
);
CREATE INDEX questionnaire_mark__item_id ON questionnaire_mark (item_id);

-- The answers of people who come from no user store, by key.
CREATE TABLE platform_profile (
    rid {row},
    application_user_rid {int} NOT NULL REFERENCES application_user (rid) ON DELETE CASCADE,
    key {text} NOT NULL,
    value {text},
    concurrency_token {text} NOT NULL,
    last_entry {int} NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX platform_profile__application_user_rid__key ON platform_profile (application_user_rid, key);
