-- What an attempt at the password of a name that nobody has writes in the place of a user's counters.
CREATE TABLE attempt_at_nobody (
    store {int} NOT NULL,
    slot {int} NOT NULL,
    attempt {id} NOT NULL,
    PRIMARY KEY (store, slot)
){clustered};
