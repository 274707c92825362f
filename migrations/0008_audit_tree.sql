-- The Merkle trees (RFC 6962) over the audit trail, one a store. The checkpoint is the signed note of
-- the tree at this size; both grow together.
CREATE TABLE audit_tree (
    store {int} NOT NULL PRIMARY KEY,
    size {int} NOT NULL,
    checkpoint {text},
    made_on {time}
) {clustered};

-- Which entry stands where. An entry is in one tree, once.
CREATE TABLE audit_leaf (
    store {int} NOT NULL,
    position {int} NOT NULL,
    entry {int} NOT NULL,
    PRIMARY KEY (store, position)
) {clustered};
CREATE UNIQUE INDEX audit_leaf__entry ON audit_leaf (entry);

-- The complete subtrees; level 0 is the leaves. The one at a position covers the leaves from
-- position * 2^level to before (position + 1) * 2^level, and never changes.
CREATE TABLE audit_node (
    store {int} NOT NULL,
    level {int} NOT NULL,
    position {int} NOT NULL,
    hash {bytes} NOT NULL,
    PRIMARY KEY (store, level, position)
) {clustered};
