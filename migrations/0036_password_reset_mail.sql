-- When a user was last mailed a link that resets the password: strangers can ask for one.
CREATE TABLE password_reset_mail (
    user_rid {int} NOT NULL PRIMARY KEY REFERENCES user_account (rid) ON DELETE CASCADE,
    sent_on {time} NOT NULL
) {clustered};
