-- What the installation knows itself by, in one row: a copy finds out by it that it is elsewhere.
CREATE TABLE installation (
    id {int} NOT NULL PRIMARY KEY,
    -- as it is configured; none where it follows from the address
    public_url {text},
    -- of the database: what a failover, a renamed host and a moved folder leave as it is
    place {text} NOT NULL,
    -- when the file was made, where its file system tells: new file systems number files alike
    born {text},
    -- the place where a copied file was found whole
    checked_place {text},
    -- what access tokens and sign-ins under way are bound to; each restore begins another
    era {text} NOT NULL,
    -- a restore that did not end
    is_restoring {bool} NOT NULL,
    adopted_on {time} NOT NULL
) {clustered};

-- Who was erased, by the number of the audit entry that says so. Processes copy it to lists outside the database, which a
-- restore applies again.
CREATE TABLE erasure (
    number {int} NOT NULL PRIMARY KEY,
    store {int} NOT NULL,
    resource {text} NOT NULL,
    person {id} NOT NULL
) {clustered};
