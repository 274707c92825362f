-- Holds no row. On PostgreSQL every write shares a lock on it, and one that others got in the way of too
-- often takes the lock alone: then nothing can get in its way.
CREATE TABLE write_gate (id {int} NOT NULL PRIMARY KEY);
