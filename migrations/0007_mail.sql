-- Mail on its way out. The data of its template, which can hold a token, is encrypted, and emptied
-- when the mail is dead. A lease keeps a mail to one process while it sends it. A dead mail's due_on
-- is when it died.
CREATE TABLE mail_message (
    rid {row},
    id {id} NOT NULL,
    store {int} NOT NULL,
    -- the user whom it is about
    person {id},
    kind {text} NOT NULL,
    state {text} NOT NULL,
    sender {text} NOT NULL,
    recipient {text} NOT NULL,
    locale {text},
    sealed_data {bytes} NOT NULL,
    created_on {time} NOT NULL,
    expires_on {time} NOT NULL,
    attempts {int} NOT NULL,
    due_on {time} NOT NULL,
    lease {id},
    leased_until {time} NOT NULL,
    last_error {text}
);
CREATE UNIQUE INDEX mail_message__id ON mail_message (id);
CREATE INDEX mail_message__store__person ON mail_message (store, person);
CREATE INDEX mail_message__state__due_on ON mail_message (state, due_on);
