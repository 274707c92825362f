-- When a person of a store was last erased: stored answers that show several people of the store, and are not newer, are not
-- repeated. A job blanks them in pieces, and then deletes the row.
CREATE TABLE idempotent_erasure (
    store {int} NOT NULL PRIMARY KEY,
    erased_on {time} NOT NULL
) {clustered};
