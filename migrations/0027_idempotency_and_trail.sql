-- What a kept answer is about: the persons under whose keys it is sealed, as their ids one after another, and
-- when the claim of one that still runs was last held. Where it is
-- null the answer is of the earlier form, which is not read any more.
ALTER TABLE idempotent_answer ADD COLUMN persons {bytes};
-- The store of which it shows more persons than it is about: such an answer goes with any of them.
ALTER TABLE idempotent_answer ADD COLUMN shows_of {int};
CREATE INDEX idempotent_answer__shows_of ON idempotent_answer (shows_of) WHERE shows_of IS NOT NULL;
CREATE TABLE idempotent_claim (
    attempt {id} NOT NULL PRIMARY KEY,
    held_on {time} NOT NULL
){clustered};
CREATE INDEX idempotent_claim__held_on ON idempotent_claim (held_on);
-- The trail of one resource: by store, its key and the number of the entry.
CREATE INDEX audit_entry__store__primary_key__rid ON audit_entry (store, primary_key, rid);
