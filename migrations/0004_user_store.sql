CREATE TABLE user_account (
    rid {row},
    store {int} NOT NULL REFERENCES idp_instance (rid),
    id {id} NOT NULL,
    external_unique_identifier {text},
    login_name {text} NOT NULL,
    login_name_key {text} NOT NULL,
    first_name {text},
    first_name_key {text},
    last_name {text},
    last_name_key {text},
    email_address {text},
    email_address_key {text},
    email_address_confirmed {bool} NOT NULL,
    phone_number {text},
    phone_number_confirmed {bool} NOT NULL,
    middle_name {text},
    nickname {text},
    profile {text},
    picture {text},
    website {text},
    gender {text},
    birthdate {text},
    zoneinfo {text},
    locale {text},
    user_valid_from {time},
    user_valid_to {time},
    is_user_active {bool} NOT NULL,
    is_user_lock_enabled {bool} NOT NULL,
    is_user_locked {bool} NOT NULL,
    failed_user_login_attempts {int} NOT NULL,
    failed_temporary_lock_attempts {int} NOT NULL,
    locked_until {time},
    password_never_expires {bool} NOT NULL,
    can_change_password_on_expiration {bool} NOT NULL,
    password_expiration {time},
    is_initial_password {bool} NOT NULL,
    is_password_change_required {bool} NOT NULL,
    quarantined_on {time},
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX user_account__store__id ON user_account (store, id);
CREATE UNIQUE INDEX user_account__store__login_name_key ON user_account (store, login_name_key);
CREATE INDEX user_account__store__email_address_key__id ON user_account (store, email_address_key, id);
CREATE INDEX user_account__store__last_name_key__id ON user_account (store, last_name_key, id);

CREATE TABLE user_profile (
    rid {row},
    store {int} NOT NULL,
    user_rid {int} NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    key {text} NOT NULL,
    value {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX user_profile__user_rid__key ON user_profile (user_rid, key);

CREATE TABLE user_group (
    rid {row},
    store {int} NOT NULL REFERENCES idp_instance (rid),
    id {id} NOT NULL,
    name {text} NOT NULL,
    name_key {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX user_group__store__id ON user_group (store, id);
CREATE UNIQUE INDEX user_group__store__name_key ON user_group (store, name_key);

CREATE TABLE group_metadata (
    rid {row},
    store {int} NOT NULL,
    group_rid {int} NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    key {text} NOT NULL,
    value {text} NOT NULL,
    concurrency_token {text} NOT NULL
);
CREATE UNIQUE INDEX group_metadata__group_rid__key ON group_metadata (group_rid, key);

-- Who is in which group; both directions are one look-up.
CREATE TABLE group_member (
    group_rid {int} NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    user_rid {int} NOT NULL REFERENCES user_account (rid) ON DELETE CASCADE,
    PRIMARY KEY (group_rid, user_rid)
) {clustered};
CREATE INDEX group_member__user_rid__group_rid ON group_member (user_rid, group_rid);

-- Which group is inside which. That there is no circle is a rule of the operations.
CREATE TABLE group_edge (
    parent_rid {int} NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    child_rid {int} NOT NULL REFERENCES user_group (rid) ON DELETE CASCADE,
    PRIMARY KEY (parent_rid, child_rid)
) {clustered};
CREATE INDEX group_edge__child_rid__parent_rid ON group_edge (child_rid, parent_rid);
