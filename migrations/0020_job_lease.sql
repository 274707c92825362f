-- Which process does what only one does at a time, until when by the database's clock; and which
-- processes there are.
CREATE TABLE job_lease (
    name {text} NOT NULL PRIMARY KEY,
    holder {id},
    until {time} NOT NULL
) {clustered};
INSERT INTO job_lease (name, until) VALUES ('prune', 0), ('purge', 0), ('refresh', 0), ('placing', 0), ('tree', 0);
CREATE TABLE process (
    id {id} NOT NULL PRIMARY KEY,
    version {text} NOT NULL,
    schema {int} NOT NULL,
    seen_on {time} NOT NULL
) {clustered};
